#include "sluice/ops/pointwise/rope.h"

#include <cmath>

#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

using ops::DType;

struct Sample {
  std::string label;
  ops::Shape shape;    // of x
  std::int64_t pairs;  // rotated channels / 2
  std::int64_t max_position = 4096;
  const char* mscale = "1";
};

OpFile make(std::uint64_t seed, DType type, const std::string& pairing, const Sample& sample) {
  Random random(seed);
  OpFile file;
  file.tensors["x"] = normal(random, type, sample.shape);
  HostTensor inv_freq(DType::f32, {sample.pairs});
  for (std::int64_t i = 0; i < sample.pairs; ++i)
    set(inv_freq, i, std::pow(1e7, -to_double(i) / to_double(sample.pairs)));
  file.tensors["inv_freq"] = std::move(inv_freq);
  HostTensor positions = integers(random, {sample.shape[0]}, sample.max_position);
  set(positions, 0, sample.max_position);  // the highest position is always included
  file.tensors["positions"] = std::move(positions);
  file.attributes = {{"mscale", sample.mscale}, {"pairing", pairing}};
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::Rope>() {
  std::vector<Sample> samples = {{"all channels", {5, 2, 64}, 32},
                                 {"one pair", {5, 2, 3}, 1},
                                 {"odd pairs", {9, 3, 77}, 29},
                                 {"many heads", {3, 33, 64}, 32},
                                 {"mscale", {5, 2, 64}, 16, 4096, "1.3688879"},
                                 {"position 262143", {65, 2, 64}, 32, 262143},
                                 {"position 1e6", {65, 2, 64}, 32, 1000000},
                                 {"position 2^31-1", {9, 2, 64}, 32, 2147483647}};
  for (const std::int64_t tokens : {1, 2, 63, 257})
    samples.push_back({std::to_string(tokens) + " tokens", {tokens, 2, 80}, 16});
  std::vector<Case> table;
  for (const DType type : {DType::f32, DType::bf16})
    for (const std::string pairing : {"half", "interleaved"})
      for (const Sample& sample : samples)
        table.push_back({sample.label + " " + pairing + " " + std::string(name(type)),
                         [=](std::uint64_t seed) { return make(seed, type, pairing, sample); }});
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::Rope>() {
  std::vector<BenchCase> table;
  const auto add = [&](const std::string& label, const std::string& pairing, const Sample& sample) {
    const double rotated = sample.shape[0] * sample.shape[1] * 2 * sample.pairs;
    table.push_back({label, [=](std::uint64_t seed) { return make(seed, DType::bf16, pairing, sample); },
                     2 * rotated * 2, 3 * rotated});
  };
  for (const std::int64_t tokens : {1, 512}) {
    const std::string count = std::to_string(tokens);
    add(count + " x 16 x 64 of 256 half bf16", "half", {"", {tokens, 16, 256}, 32});
    add(count + " x 128 x 64 interleaved bf16", "interleaved", {"", {tokens, 128, 64}, 32});
  }
  return table;
}

}  // namespace sluice::runner
