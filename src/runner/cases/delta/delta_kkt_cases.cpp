#include "sluice/ops/delta/delta_kkt.h"

#include <limits>

#include "runner/case.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

using ops::DType;

struct Sizes {
  std::int64_t batch;
  std::int64_t tokens;
  std::int64_t key_heads;
  std::int64_t heads;
  std::int64_t width;
  std::int64_t chunk;
};

OpFile make(std::uint64_t seed, DType type, const Sizes& sizes, double step = 0.2) {
  Random random(seed);
  OpFile file;
  file.tensors["k"] = normal(random, type, {sizes.batch, sizes.tokens, sizes.key_heads, sizes.width}, 0.1);
  const ops::Shape gates = {sizes.batch, sizes.tokens, sizes.heads};
  file.tensors["beta"] = uniform(random, DType::f32, gates, 0, 1);
  HostTensor g(DType::f32, gates);
  for (std::int64_t i = 0; i < gates.elements(); ++i) {
    const std::int64_t token = i / sizes.heads % sizes.tokens;
    const double before = token % sizes.chunk == 0 ? 0 : g.at(i - sizes.heads);
    set(g, i, before - step * random.uniform());
  }
  file.tensors["g"] = std::move(g);
  file.attributes["chunk"] = std::to_string(sizes.chunk);
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::DeltaKkt>() {
  std::vector<Case> table;
  for (const DType type : {DType::f32, DType::bf16}) {
    const std::string suffix = type == DType::f32 ? " f32" : " bf16";
    const auto add = [&](std::string label, Sizes sizes, double step) {
      table.push_back(
          {std::move(label) + suffix, [=](std::uint64_t seed) { return make(seed, type, sizes, step); }});
    };
    for (const std::int64_t tokens : {1, 2, 63, 64, 65, 257})
      add(std::to_string(tokens) + " tokens", {1, tokens, 1, 2, 64, 64}, 0.2);
    add("batch of three", {3, 50, 2, 2, 32, 16}, 0.2);
    add("odd width", {1, 40, 1, 3, 77, 16}, 0.2);
    add("odd chunk", {2, 40, 2, 4, 32, 7}, 0.2);
    add("chunk of one", {1, 5, 1, 1, 32, 1}, 0.2);
    add("chunk past the end", {1, 5, 1, 1, 32, 64}, 0.2);
    add("width over 192", {1, 70, 1, 2, 256, 64}, 0.2);
    add("steep decay", {1, 64, 1, 2, 32, 64}, 300);
    table.push_back({"decay to zero" + suffix, [=](std::uint64_t seed) {
                       OpFile file = make(seed, type, {1, 32, 1, 2, 32, 16});
                       for (std::int64_t i = 10; i < 32; ++i)
                         set(file.tensors["g"], i, -std::numeric_limits<double>::infinity());
                       return file;
                     }});
  }
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::DeltaKkt>() {
  const double chunks = 512.0 / 64 * 32;
  return {{"512 x 16/32 heads of 128 bf16, chunk 64",
           [](std::uint64_t seed) {
             return make(seed, DType::bf16, {1, 512, 16, 32, 128, 64});
           },
           512.0 * (16 * 128 * 2 + 32 * 8 + 32 * 64 * 4), chunks * 64 * 63 / 2 * (2 * 128 + 20)}};
}

}  // namespace sluice::runner
