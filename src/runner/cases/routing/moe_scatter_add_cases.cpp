#include "sluice/ops/routing/moe_scatter_add.h"

#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/cases/element_type.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

struct Sample {
  std::string label;
  std::int64_t bucket, tokens, width;
  double scale = 1;
};

OpFile make(std::uint64_t seed, const TypePair& types, const Sample& s) {
  Random random(seed);
  OpFile file;
  file.tensors["bucket_out"] = normal(random, types.first, {s.bucket, s.width}, s.scale);
  file.tensors["token_idx"] = integers(random, {s.bucket}, s.tokens);  // tokens may repeat
  file.tensors["weights"] = uniform(random, ops::DType::f32, {s.bucket}, 0, 1);
  file.tensors["sum"] = normal(random, types.second, {s.tokens, s.width}, s.scale);
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::MoeScatterAdd>() {
  const std::vector<Sample> samples = {{"one row", 1, 1, 256},
                                       {"one column", 5, 3, 1},
                                       {"repeated token", 9, 2, 77},
                                       {"65 of 257 tokens", 65, 257, 64},
                                       {"257 of 65 tokens", 257, 65, 33},
                                       {"wide", 63, 64, 2500},
                                       {"huge", 7, 5, 77, 1e15},
                                       {"tiny", 7, 5, 77, 1e-15}};
  return cases_of_types(samples, make);
}

template <>
std::vector<BenchCase> bench_cases<ops::MoeScatterAdd>() {
  std::vector<BenchCase> table;
  for (const std::int64_t bucket : {1, 64}) {
    const double elements = to_double(bucket) * 2048;
    table.push_back({std::to_string(bucket) + " x 2048 into 512 f32",
                     [=](std::uint64_t seed) {
                       return make(seed, type_pairs()[0], {"", bucket, 512, 2048});
                     },
                     3 * elements * 4, 2 * elements});
  }
  return table;
}

}  // namespace sluice::runner
