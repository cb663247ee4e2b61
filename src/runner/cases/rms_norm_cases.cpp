#include "sluice/ops/rms_norm.h"

#include "runner/case.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

OpFile make(std::uint64_t seed, ops::DType type, const ops::Shape& shape, bool weighted, double scale) {
  Random random(seed);
  OpFile file;
  file.tensors["x"] = normal(random, type, shape, scale);
  if (weighted) file.tensors["weight"] = normal(random, type, {shape.back()}, 0.2, 1);
  file.attributes["eps"] = "1e-6";
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::RmsNorm>() {
  std::vector<Case> table;
  const auto add = [&](std::string label, ops::DType type, ops::Shape shape, bool weighted, double scale) {
    table.push_back(
        {std::move(label), [=](std::uint64_t seed) { return make(seed, type, shape, weighted, scale); }});
  };
  for (const ops::DType type : {ops::DType::f32, ops::DType::bf16}) {
    const std::string suffix = type == ops::DType::f32 ? " f32" : " bf16";
    for (const std::int64_t tokens : {1, 2, 63, 65}) {
      add(std::to_string(tokens) + " rows of 256" + suffix, type, {tokens, 256}, true, 1);
      add(std::to_string(tokens) + " rows of 77" + suffix, type, {tokens, 77}, true, 1);
    }
    add("heads" + suffix, type, {5, 3, 128}, true, 1);
    add("one element" + suffix, type, {3, 1}, true, 1);
    add("no weight" + suffix, type, {7, 96}, false, 1);
    add("huge" + suffix, type, {4, 256}, true, 1e15);
    add("tiny" + suffix, type, {4, 256}, true, 1e-15);
  }
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::RmsNorm>() {
  std::vector<BenchCase> table;
  for (const std::int64_t tokens : {1, 512})
    table.push_back({std::to_string(tokens) + " x 4096 bf16",
                     [=](std::uint64_t seed) {
                       return make(seed, ops::DType::bf16, {tokens, 4096}, true, 1);
                     },
                     static_cast<double>(tokens) * 4096 * 4, static_cast<double>(tokens) * 4096 * 4});
  return table;
}

}  // namespace sluice::runner
