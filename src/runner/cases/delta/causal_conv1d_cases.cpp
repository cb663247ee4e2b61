#include "sluice/ops/delta/causal_conv1d.h"

#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

using ops::DType;

struct Sizes {
  std::int64_t tokens;
  std::int64_t channels;
  std::int64_t width;
  double scale = 1;
};

OpFile make(std::uint64_t seed, DType type, DType weight_type, const Sizes& sizes) {
  Random random(seed);
  OpFile file;
  file.tensors["x"] = normal(random, type, {sizes.tokens, sizes.channels}, sizes.scale);
  file.tensors["weight"] = normal(random, weight_type, {sizes.channels, sizes.width}, 0.5);
  file.tensors["state"] = normal(random, DType::f32, {sizes.width - 1, sizes.channels}, sizes.scale);
  return file;
}

// Four sequences, one of them empty, in a pool of six rows.
OpFile make_sequences(std::uint64_t seed, DType type, std::int64_t width) {
  Random random(seed);
  OpFile file = make(seed, type, DType::f32, {9, 70, width});
  file.tensors["state"] = normal(random, DType::f32, {6, width - 1, 70});
  file.tensors["seq_starts"] = indices({0, 1, 1, 3, 9});
  file.tensors["slots"] = indices({4, 0, 5, 2});
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::CausalConv1d>() {
  std::vector<Case> table;
  const auto add = [&](const std::string& label, DType type, DType weight_type, Sizes sizes) {
    table.push_back({label + (type == DType::f32 ? " f32" : " bf16"),
                     [=](std::uint64_t seed) { return make(seed, type, weight_type, sizes); }});
  };
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const std::int64_t tokens : {1, 2, 3, 4, 63, 65})
      add(std::to_string(tokens) + " tokens", type, type, {tokens, 300, 4});
    for (const std::int64_t width : {1, 2, 3, 5, 9}) {
      add("width " + std::to_string(width), type, DType::f16, {5, 77, width});
      add("width " + std::to_string(width) + " one token", type, DType::f32, {1, 33, width});
    }
    add("one channel", type, DType::bf16, {7, 1, 4});
    add("whole blocks, f32 taps", type, DType::f32, {6, 512, 4});
    add("huge", type, DType::f32, {5, 64, 4, 1e18});
    add("tiny", type, DType::f32, {5, 64, 4, 1e-18});
    for (const std::int64_t width : {1, 4})
      table.push_back(
          {"sequences of width " + std::to_string(width) + (type == DType::f32 ? " f32" : " bf16"),
           [=](std::uint64_t seed) { return make_sequences(seed, type, width); }});
  }
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::CausalConv1d>() {
  std::vector<BenchCase> table;
  for (const std::int64_t tokens : {1, 512}) {
    const double elements = to_double(tokens) * 8192;
    table.push_back({std::to_string(tokens) + " x 8192 bf16",
                     [=](std::uint64_t seed) {
                       return make(seed, DType::bf16, DType::bf16, {tokens, 8192, 4});
                     },
                     elements * 4 + 8192 * 4 * 2 + 2 * 8192 * 3 * 4, elements * 8});
  }
  return table;
}

}  // namespace sluice::runner
