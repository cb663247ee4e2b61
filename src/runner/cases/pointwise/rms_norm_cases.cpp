#include "sluice/ops/pointwise/rms_norm.h"

#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/cases/element_type.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

using ops::DType;

struct Sample {
  std::string label;
  ops::Shape shape;
  double scale = 1;
  bool weighted = true;
  const char* eps = "1e-6";
};

OpFile make(std::uint64_t seed, DType type, DType weight_type, const Sample& sample) {
  Random random(seed);
  OpFile file;
  file.tensors["x"] = normal(random, type, sample.shape, sample.scale);
  if (sample.weighted) file.tensors["weight"] = normal(random, weight_type, {sample.shape.back()}, 0.2, 1);
  file.attributes["eps"] = sample.eps;
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::RmsNorm>() {
  std::vector<Sample> samples = {{"heads", {5, 3, 128}},
                                 {"rank 4", {2, 3, 2, 40}},
                                 {"one row", {96}},
                                 {"one element", {3, 1}},
                                 {"no weight", {7, 96}, 1, false},
                                 {"wide", {2, 7168}},
                                 {"large eps", {4, 64}, 1, true, "0.5"},
                                 {"no eps", {4, 64}, 1, true, "0"},
                                 {"huge", {4, 256}, 1e15},
                                 {"squares beyond F32", {4, 256}, 1e30},
                                 {"tiny", {4, 256}, 1e-15},
                                 {"squares below F32", {4, 256}, 1e-30, true, "0"}};
  for (const std::int64_t rows : {1, 2, 63, 65, 257})
    for (const std::int64_t width : {77, 256})
      samples.push_back({std::to_string(rows) + " rows of " + std::to_string(width), {rows, width}});
  std::vector<Case> table;
  for (const DType type : {DType::f32, DType::bf16})
    for (const Sample& sample : samples)
      table.push_back({sample.label + " " + std::string(name(type)),
                       [=](std::uint64_t seed) { return make(seed, type, type, sample); }});
  for (const DType weight_type : {DType::f32, DType::bf16, DType::f16})
    table.push_back({"weight " + std::string(name(weight_type)), [=](std::uint64_t seed) {
                       return make(seed, DType::f32, weight_type, {"", {3, 77}});
                     }});
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::RmsNorm>() {
  std::vector<BenchCase> table;
  for (const std::int64_t tokens : {1, 512})
    for (const DType type : {DType::f32, DType::bf16}) {
      const double elements = to_double(tokens) * 2048;
      table.push_back({std::to_string(tokens) + " x 2048 " + std::string(name(type)),
                       [=](std::uint64_t seed) {
                         return make(seed, type, DType::bf16, {"", {tokens, 2048}});
                       },
                       2 * elements * to_double(size_bytes(type)) + 2048 * 2, 4 * elements});
    }
  return table;
}

}  // namespace sluice::runner
