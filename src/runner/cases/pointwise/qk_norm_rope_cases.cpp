#include "sluice/ops/pointwise/qk_norm_rope.h"

#include <cmath>

#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

using ops::DType;

struct Sample {
  std::string label;
  std::int64_t tokens = 1;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t width = 64;
  std::int64_t pairs = 32;
  DType weights = DType::f32;
  double scale = 1;
};

OpFile make(std::uint64_t seed, DType type, const Sample& s) {
  Random random(seed);
  OpFile file;
  file.tensors["q"] = normal(random, type, {s.tokens, s.heads, s.width}, s.scale);
  file.tensors["k"] = normal(random, type, {s.tokens, s.kv_heads, s.width}, s.scale);
  file.tensors["q_weight"] = normal(random, s.weights, {s.width}, 0.3, 1);
  file.tensors["k_weight"] = normal(random, s.weights, {s.width}, 0.3, 1);
  HostTensor inv_freq(DType::f32, {s.pairs});
  for (std::int64_t i = 0; i < s.pairs; ++i)
    set(inv_freq, i, std::pow(1e7, -to_double(i) / to_double(s.pairs)));
  file.tensors["inv_freq"] = std::move(inv_freq);
  file.tensors["positions"] = integers(random, {s.tokens}, 262144);
  file.attributes = {{"eps", "1e-6"}, {"mscale", "1.25"}};
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::QkNormRope>() {
  std::vector<Sample> samples = {{"256 of which 64", 3, 16, 2, 256, 32},
                                 {"128, all", 5, 8, 4, 128, 64},
                                 {"one pair", 5, 2, 1, 3, 1},
                                 {"odd", 9, 3, 1, 77, 29},
                                 {"wide", 2, 2, 2, 640, 200},
                                 {"bf16 weights", 4, 4, 2, 64, 16, DType::bf16},
                                 {"f16 weights", 4, 4, 2, 64, 16, DType::f16},
                                 {"huge", 2, 4, 2, 64, 16, DType::f32, 1e25},
                                 {"tiny", 2, 4, 2, 64, 16, DType::f32, 1e-25}};
  for (const std::int64_t tokens : {1, 2, 63, 257})
    samples.push_back({std::to_string(tokens) + " tokens", tokens});
  std::vector<Case> table;
  for (const DType type : {DType::f32, DType::bf16})
    for (const Sample& sample : samples)
      table.push_back({sample.label + " " + std::string(name(type)),
                       [=](std::uint64_t seed) { return make(seed, type, sample); }});
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::QkNormRope>() {
  std::vector<BenchCase> table;
  for (const std::int64_t tokens : {1, 512}) {
    const double elements = to_double(tokens) * 18 * 256;
    table.push_back({std::to_string(tokens) + " x 16/2 heads of 256 bf16",
                     [=](std::uint64_t seed) {
                       return make(seed, DType::bf16, {"", tokens, 16, 2, 256, 32});
                     },
                     4 * elements, 4 * elements});
  }
  return table;
}

}  // namespace sluice::runner
