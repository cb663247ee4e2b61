#include "sluice/ops/delta/delta_gates.h"

#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

using ops::DType;

OpFile make(std::uint64_t seed, DType type, DType parameter_type, const ops::Shape& shape, double scale,
            double a_log) {
  Random random(seed);
  OpFile file;
  file.tensors["a"] = normal(random, type, shape, scale);
  file.tensors["b"] = normal(random, type, shape, scale);
  file.tensors["A_log"] = normal(random, parameter_type, {shape.back()}, 1, a_log);
  file.tensors["dt_bias"] = normal(random, parameter_type, {shape.back()});
  return file;
}

// Factors that overflow or vanish individually, but not in the product: A_log up to 300 with a down to -300.
OpFile make_extreme(DType type) {
  const std::vector<std::pair<double, double>> pairs = {{0, -1e30}, {120, -300}, {300, -300}, {300, -299},
                                                        {88, -15},  {89, -14.9}, {100, -200}, {-300, 50},
                                                        {-50, 1e4}, {5, -87},    {2, -104},   {0, 0}};
  const auto count = std::ssize(pairs);
  OpFile file;
  file.tensors["a"] = HostTensor(type, {1, count});
  file.tensors["A_log"] = HostTensor(DType::f32, {count});
  for (std::int64_t i = 0; i < count; ++i) {
    set(file.tensors["A_log"], i, pairs[i].first);
    set(file.tensors["a"], i, pairs[i].second);
  }
  file.tensors["b"] = file.tensors["a"];
  file.tensors["dt_bias"] = constant(DType::f32, {count}, 0);
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::DeltaGates>() {
  std::vector<Case> table;
  const auto add = [&](std::string label, auto make_file) { table.push_back({std::move(label), make_file}); };
  for (const DType type : {DType::f32, DType::bf16}) {
    const std::string suffix = type == DType::f32 ? " f32" : " bf16";
    for (const std::int64_t tokens : {1, 2, 65, 257})
      for (const std::int64_t heads : {1, 32, 37})
        add(std::to_string(tokens) + " tokens of " + std::to_string(heads) + " heads" + suffix,
            [=](std::uint64_t seed) {
              return make(seed, type, DType::f32, {tokens, heads}, 2, 1);
            });
    for (const DType parameter : {DType::bf16, DType::f16})
      add(std::string(name(parameter)) + " parameters" + suffix, [=](std::uint64_t seed) {
        return make(seed, type, parameter, {3, 48}, 2, 1);
      });
    add("far out" + suffix, [=](std::uint64_t seed) { return make(seed, type, DType::f32, {9, 32}, 40, 2); });
    add("small rates" + suffix, [=](std::uint64_t seed) {
      return make(seed, type, DType::f32, {9, 32}, 1, -20);
    });
    add("factors that overflow" + suffix, [=](std::uint64_t) { return make_extreme(type); });
  }
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::DeltaGates>() {
  std::vector<BenchCase> table;
  for (const std::int64_t tokens : {1, 4096}) {
    const double elements = to_double(tokens) * 32;
    table.push_back({std::to_string(tokens) + " x 32 bf16",
                     [=](std::uint64_t seed) {
                       return make(seed, DType::bf16, DType::f32, {tokens, 32}, 2, 1);
                     },
                     elements * 12, elements * 40});
  }
  return table;
}

}  // namespace sluice::runner
