#include "sluice/ops/cache/hadamard.h"

#include "base/error.h"
#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

struct Settings {
  ops::DType type = ops::DType::f32;
  bool signs = true;
  bool inverse = false;
  double scale = 1;
};

OpFile make(std::uint64_t seed, const ops::Shape& shape, const Settings& settings) {
  Random random(seed);
  OpFile file;
  file.tensors["x"] = normal(random, settings.type, shape, settings.scale);
  if (settings.signs) file.tensors["signs"] = random_bytes(random, ops::DType::u8, {shape.back() / 8});
  file.attributes["inverse"] = settings.inverse ? "1" : "0";
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::Hadamard>() {
  std::vector<Case> table;
  const auto add = [&](std::string label, const ops::Shape& shape, const Settings& settings) {
    table.push_back({std::move(label), [=](std::uint64_t seed) { return make(seed, shape, settings); }});
  };
  for (const ops::DType type : {ops::DType::f32, ops::DType::bf16})
    for (const bool inverse : {false, true})
      for (const bool signs : {false, true}) {
        const std::string suffix = fmt::format("{}{} {}", inverse ? " inverse" : "", signs ? "" : " no signs",
                                               type == ops::DType::f32 ? "f32" : "bf16");
        for (const std::int64_t width : {32, 64, 128, 256, 512, 1024})
          add(fmt::format("3 rows of {}{}", width, suffix), {3, width}, {type, signs, inverse});
        add("one row" + suffix, {256}, {type, signs, inverse});
        add("heads" + suffix, {65, 3, 128}, {type, signs, inverse});
        add("huge" + suffix, {5, 128}, {type, signs, inverse, 1e36});
        add("tiny" + suffix, {5, 128}, {type, signs, inverse, 1e-30});
      }
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::Hadamard>() {
  std::vector<BenchCase> table;
  for (const std::int64_t tokens : {1, 512}) {
    const double elements = to_double(tokens) * 16 * 256;
    table.push_back({fmt::format("{} x 16 x 256 bf16", tokens),
                     [=](std::uint64_t seed) {
                       return make(seed, {tokens, 16, 256}, {ops::DType::bf16});
                     },
                     elements * 4, elements * 8});
  }
  return table;
}

}  // namespace sluice::runner
