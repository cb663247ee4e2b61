#include "sluice/ops/sample.h"

#include <cmath>

#include "runner/case.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

using ops::DType;

struct Settings {
  const char* label;
  const char* temperature;
  const char* top_k;
  const char* top_p;
  const char* min_p;
};

OpFile with(HostTensor logits, const Settings& settings, Random& random) {
  OpFile file;
  HostTensor positions(DType::i32, {logits.shape[0]});
  for (std::int64_t i = 0; i < logits.shape[0]; ++i)
    set(positions, i, static_cast<double>(random.integer(300000)));
  file.tensors["logits"] = std::move(logits);
  file.tensors["positions"] = std::move(positions);
  file.attributes = {{"temperature", settings.temperature},
                     {"top_k", settings.top_k},
                     {"top_p", settings.top_p},
                     {"min_p", settings.min_p},
                     {"seed", std::to_string(random.integer(1 << 30))}};
  return file;
}

OpFile make(std::uint64_t seed, const ops::Shape& shape, const Settings& settings, double scale) {
  Random random(seed);
  HostTensor logits = normal(random, DType::f32, shape, scale);
  return with(std::move(logits), settings, random);
}

// Few distinct values: equal logits share weights, and only the index tells them apart.
OpFile make_ties(std::uint64_t seed, const Settings& settings) {
  Random random(seed);
  HostTensor logits(DType::f32, {33, 1000});
  for (std::int64_t i = 0; i < logits.shape.elements(); ++i)
    set(logits, i, static_cast<double>(random.integer(3)));
  return with(std::move(logits), settings, random);
}

// Tokens that are out of the question, a row with one left, and a certain one.
OpFile make_infinite(std::uint64_t seed, const Settings& settings) {
  Random random(seed);
  HostTensor logits = normal(random, DType::f32, {3, 777});
  for (std::int64_t i = 0; i < 777; ++i) {
    if (i % 3 != 0) set(logits, i, -INFINITY);
    if (i != 500) set(logits, 777 + i, -INFINITY);
    if (i == 123) set(logits, 2 * 777 + i, INFINITY);
  }
  return with(std::move(logits), settings, random);
}

constexpr Settings kSettings[] = {
    {"greedy", "0", "0", "1", "0"},          {"warm", "1", "0", "1", "0"},
    {"top_k 20", "0.7", "20", "1", "0"},     {"top_p 0.9", "1", "0", "0.9", "0"},
    {"min_p 0.05", "1.3", "0", "1", "0.05"}, {"all limits", "0.8", "40", "0.95", "0.02"},
    {"cold", "0.01", "0", "0.99", "0"},      {"hot", "50", "100", "0.5", "0"},
};

}  // namespace

template <>
std::vector<Case> cases<ops::Sample>() {
  std::vector<Case> table;
  for (const Settings& settings : kSettings) {
    for (const ops::Shape& shape :
         {ops::Shape{1, 1}, ops::Shape{3, 7}, ops::Shape{17, 4096}, ops::Shape{2, 50021}})
      table.push_back({std::string(settings.label) + " " + to_string(shape),
                       [=](std::uint64_t seed) { return make(seed, shape, settings, 3); }});
    table.push_back({std::string(settings.label) + " ties",
                     [=](std::uint64_t seed) { return make_ties(seed, settings); }});
    table.push_back({std::string(settings.label) + " infinite logits",
                     [=](std::uint64_t seed) { return make_infinite(seed, settings); }});
  }
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::Sample>() {
  std::vector<BenchCase> table;
  for (const Settings& settings : {kSettings[0], kSettings[5]})
    for (const std::int64_t rows : {1, 32})
      table.push_back({std::string(settings.label) + " " + std::to_string(rows) + "x248320",
                       [=](std::uint64_t seed) {
                         return make(seed, {rows, 248320}, settings, 3);
                       },
                       static_cast<double>(rows) * 248320 * 4, 0});
  return table;
}

}  // namespace sluice::runner
