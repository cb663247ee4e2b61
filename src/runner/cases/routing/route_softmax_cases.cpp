#include "sluice/ops/routing/route_softmax.h"

#include <cmath>

#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

using ops::DType;

OpFile route(HostTensor logits, std::int64_t k, bool normalize) {
  OpFile file;
  file.tensors["logits"] = std::move(logits);
  file.attributes = {{"k", std::to_string(k)}, {"normalize", normalize ? "1" : "0"}};
  return file;
}

OpFile make(std::uint64_t seed, DType type, const ops::Shape& shape, std::int64_t k, bool normalize,
            double scale) {
  Random random(seed);
  return route(normal(random, type, shape, scale), k, normalize);
}

// Few distinct values, so that many experts tie.
OpFile make_ties(std::uint64_t seed, std::int64_t k) {
  Random random(seed);
  HostTensor logits(DType::f32, {17, 64});
  for (std::int64_t i = 0; i < logits.shape.elements(); ++i) set(logits, i, random.integer(4));
  return route(std::move(logits), k, true);
}

// Experts with logits of -inf, tokens where all are, and experts with +inf.
OpFile make_infinite(std::uint64_t seed) {
  Random random(seed);
  HostTensor logits = normal(random, DType::f32, {4, 33});
  for (std::int64_t e = 0; e < 33; ++e) {
    if (e % 3 != 0) set(logits, e, -INFINITY);
    set(logits, 33 + e, -INFINITY);
    if (e % 16 == 5) set(logits, 66 + e, INFINITY);
  }
  return route(std::move(logits), 20, false);
}

}  // namespace

template <>
std::vector<Case> cases<ops::RouteSoftmax>() {
  std::vector<Case> table;
  const auto add = [&](const ops::Shape& shape, std::int64_t k, double scale = 1) {
    for (const DType type : {DType::f32, DType::bf16})
      for (const bool normalize : {false, true})
        table.push_back({to_string(shape) + " k " + std::to_string(k) + (normalize ? " normalized " : " ") +
                             std::string(name(type)) + (scale == 1 ? "" : " steep"),
                         [=](std::uint64_t seed) { return make(seed, type, shape, k, normalize, scale); }});
  };
  for (const std::int64_t tokens : {1, 2, 65, 257}) add({tokens, 256}, 8);
  add({3, 1}, 1);
  add({5, 7}, 3);
  add({5, 61}, 61);
  add({2, 4099}, 10);
  add({2, 1031}, 1031);
  add({9, 256}, 8, 100);
  table.push_back({"ties", [](std::uint64_t seed) { return make_ties(seed, 12); }});
  table.push_back({"all tied experts", [](std::uint64_t seed) { return make_ties(seed, 64); }});
  table.push_back({"infinite logits", make_infinite});
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::RouteSoftmax>() {
  std::vector<BenchCase> table;
  for (const std::int64_t tokens : {1, 512}) {
    const double logits = to_double(tokens) * 256;
    table.push_back({std::to_string(tokens) + " x 256 top 8 f32",
                     [=](std::uint64_t seed) {
                       return make(seed, DType::f32, {tokens, 256}, 8, true, 1);
                     },
                     logits * 4 + to_double(tokens) * 8 * 8, logits});
  }
  return table;
}

}  // namespace sluice::runner
