#include "sluice/ops/pointwise/split_q_gate.h"

#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

OpFile make(std::uint64_t seed, ops::DType type, const ops::Shape& shape) {
  Random random(seed);
  OpFile file;
  file.tensors["x"] = normal(random, type, shape);
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::SplitQGate>() {
  std::vector<Case> table;
  for (const ops::DType type : {ops::DType::f32, ops::DType::bf16})
    for (const ops::Shape& shape :
         {ops::Shape{1, 1, 2}, ops::Shape{1, 16, 512}, ops::Shape{65, 3, 74}, ops::Shape{257, 2, 128}})
      table.push_back({to_string(shape) + " " + std::string(name(type)),
                       [=](std::uint64_t seed) { return make(seed, type, shape); }});
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::SplitQGate>() {
  std::vector<BenchCase> table;
  for (const std::int64_t tokens : {1, 512})
    table.push_back({std::to_string(tokens) + " x 16 x 2*256 bf16",
                     [=](std::uint64_t seed) {
                       return make(seed, ops::DType::bf16, {tokens, 16, 512});
                     },
                     to_double(tokens) * 16 * 512 * 2 * 2, 0});
  return table;
}

}  // namespace sluice::runner
