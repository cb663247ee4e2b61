// add, sigmoid_gate and swiglu take two tensors of any equal shape, so they share a table.
#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/cases/element_type.h"
#include "runner/random_tensor.h"
#include "sluice/ops/pointwise/add.h"
#include "sluice/ops/pointwise/sigmoid_gate.h"
#include "sluice/ops/pointwise/swiglu.h"

namespace sluice::runner {

namespace {

// The names of an op's two inputs.
struct Inputs {
  const char* first;
  const char* second;
};

OpFile make(std::uint64_t seed, const Inputs& inputs, const TypePair& types, const ops::Shape& shape,
            double scale) {
  Random random(seed);
  OpFile file;
  file.tensors[inputs.first] = normal(random, types.first, shape, scale);
  file.tensors[inputs.second] = normal(random, types.second, shape, scale);
  return file;
}

std::vector<Case> table(const Inputs& inputs) {
  std::vector<Case> table;
  for (const TypePair& types : type_pairs()) {
    const auto add = [&](const std::string& label, const ops::Shape& shape, double scale) {
      table.push_back({label + " " + types.label,
                       [=](std::uint64_t seed) { return make(seed, inputs, types, shape, scale); }});
    };
    for (const std::int64_t width : {1, 3, 17, 64, 257}) {
      add("row of " + std::to_string(width), {width}, 1);
      add("65 rows of " + std::to_string(width), {65, width}, 3);
    }
    add("experts", {5, 3, 77}, 1);
    add("one token", {1, 2048}, 1);
    add("large", {3, 7, 2500}, 1);
    add("huge", {4, 40}, 1e15);
    add("tiny", {4, 40}, 1e-15);
    add("saturated", {3, 100}, 60);
  }
  return table;
}

std::vector<BenchCase> bench_table(const Inputs& inputs, double operations) {
  std::vector<BenchCase> table;
  for (const std::int64_t tokens : {1, 512})
    for (const TypePair& types : {type_pairs()[0], type_pairs()[1]}) {
      const ops::Shape shape{tokens, 4096};
      const double elements = shape.elements();
      table.push_back({std::to_string(tokens) + " x 4096 " + types.label,
                       [=](std::uint64_t seed) { return make(seed, inputs, types, shape, 1); },
                       3 * elements * to_double(size_bytes(types.first)), operations * elements});
    }
  return table;
}

constexpr Inputs kAdd{"a", "b"};
constexpr Inputs kSigmoidGate{"x", "gate"};
constexpr Inputs kSwiglu{"gate", "up"};

}  // namespace

template <>
std::vector<Case> cases<ops::Add>() {
  return table(kAdd);
}
template <>
std::vector<Case> cases<ops::SigmoidGate>() {
  return table(kSigmoidGate);
}
template <>
std::vector<Case> cases<ops::Swiglu>() {
  return table(kSwiglu);
}
template <>
std::vector<BenchCase> bench_cases<ops::Add>() {
  return bench_table(kAdd, 1);
}
template <>
std::vector<BenchCase> bench_cases<ops::SigmoidGate>() {
  return bench_table(kSigmoidGate, 5);
}
template <>
std::vector<BenchCase> bench_cases<ops::Swiglu>() {
  return bench_table(kSwiglu, 5);
}

}  // namespace sluice::runner
