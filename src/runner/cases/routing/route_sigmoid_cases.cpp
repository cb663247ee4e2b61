#include "sluice/ops/routing/route_sigmoid.h"

#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

using ops::DType;

struct Sample {
  std::string label;
  ops::Shape shape;  // of logits
  std::int64_t k, groups, top_groups;
  DType type = DType::f32;
  DType bias_type = DType::f32;
  bool normalize = true;
  double scale = 1;      // of the logits
  double bias_mean = 0;  // below -1 every biased score is negative
};

OpFile make(std::uint64_t seed, const Sample& s) {
  Random random(seed);
  OpFile file;
  file.tensors["logits"] = normal(random, s.type, s.shape, s.scale);
  file.tensors["bias"] = normal(random, s.bias_type, {s.shape[1]}, 0.1, s.bias_mean);
  file.attributes = {{"k", std::to_string(s.k)},
                     {"groups", std::to_string(s.groups)},
                     {"top_groups", std::to_string(s.top_groups)},
                     {"normalize", s.normalize ? "1" : "0"},
                     {"scale", "2.5"}};
  return file;
}

// Few distinct values, so that experts and whole groups tie.
OpFile make_ties(std::uint64_t seed) {
  Random random(seed);
  OpFile file = make(seed, {"", {33, 64}, 8, 8, 4});
  for (std::int64_t i = 0; i < 33 * 64; ++i) set(file.tensors["logits"], i, random.integer(3));
  for (std::int64_t i = 0; i < 64; ++i) set(file.tensors["bias"], i, 0.25);
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::RouteSigmoid>() {
  std::vector<Sample> samples = {
      {"one group", {9, 64}, 6, 1, 1},
      {"groups of one", {9, 16}, 5, 16, 7},
      {"groups of two", {9, 16}, 5, 8, 3},
      {"groups of three", {9, 21}, 5, 7, 3},
      {"every candidate", {9, 64}, 32, 8, 4},
      {"all groups", {9, 64}, 8, 8, 8},
      {"one expert", {3, 1}, 1, 1, 1},
      {"thousands", {3, 4096}, 16, 16, 4},
      {"bf16", {17, 256}, 8, 8, 4, DType::bf16, DType::bf16},
      {"bf16 logits", {17, 256}, 8, 8, 4, DType::bf16, DType::f32},
      {"f16 bias", {17, 256}, 8, 8, 4, DType::f32, DType::f16},
      {"not normalized", {17, 256}, 8, 8, 4, DType::f32, DType::f32, false},
      {"saturated", {17, 256}, 8, 8, 4, DType::f32, DType::f32, true, 30},
      {"underflowing", {17, 256}, 8, 8, 4, DType::f32, DType::f32, true, 1000},
      {"negative scores", {17, 256}, 8, 8, 4, DType::f32, DType::f32, true, 1, -3}};
  for (const std::int64_t tokens : {1, 2, 65, 257})
    samples.push_back({std::to_string(tokens) + " tokens", {tokens, 256}, 8, 8, 4});
  std::vector<Case> table;
  table.reserve(samples.size() + 1);
  for (const Sample& sample : samples)
    table.push_back({sample.label, [=](std::uint64_t seed) { return make(seed, sample); }});
  table.push_back({"ties", make_ties});
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::RouteSigmoid>() {
  std::vector<BenchCase> table;
  for (const std::int64_t tokens : {1, 512}) {
    const double logits = to_double(tokens) * 256;
    table.push_back({std::to_string(tokens) + " x 256 top 8 of 4 of 8 groups f32",
                     [=](std::uint64_t seed) {
                       return make(seed, {"", {tokens, 256}, 8, 8, 4});
                     },
                     (logits + 256) * 4 + to_double(tokens) * 8 * 8, 4 * logits});
  }
  return table;
}

}  // namespace sluice::runner
