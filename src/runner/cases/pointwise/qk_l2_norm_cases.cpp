#include "sluice/ops/pointwise/qk_l2_norm.h"

#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/cases/element_type.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

OpFile make(std::uint64_t seed, const TypePair& types, const ops::Shape& shape, double scale) {
  Random random(seed);
  OpFile file;
  file.tensors["q"] = normal(random, types.first, shape, scale);
  file.tensors["k"] = normal(random, types.second, shape, scale);
  file.attributes = {{"eps", "1e-6"}, {"q_scale", "0.08838834764831845"}, {"k_scale", "1.5"}};
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::QkL2Norm>() {
  std::vector<Case> table;
  for (const TypePair& types : type_pairs()) {
    const auto add = [&](const std::string& label, const ops::Shape& shape, double scale) {
      table.push_back(
          {label + " " + types.label, [=](std::uint64_t seed) { return make(seed, types, shape, scale); }});
    };
    for (const std::int64_t tokens : {1, 2, 65})
      for (const std::int64_t width : {1, 37, 128})
        add(std::to_string(tokens) + " tokens of 3 x " + std::to_string(width), {tokens, 3, width}, 1);
    add("zero", {2, 2, 64}, 0);
    add("huge", {4, 2, 64}, 1e15);
    add("squares beyond F32", {4, 2, 64}, 1e30);
    add("tiny", {4, 2, 64}, 1e-15);
  }
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::QkL2Norm>() {
  std::vector<BenchCase> table;
  for (const std::int64_t tokens : {1, 512})
    for (const TypePair& types : {type_pairs()[0], type_pairs()[1]}) {
      const double elements = to_double(tokens) * 2 * 16 * 128;
      table.push_back({std::to_string(tokens) + " x 16 x 128 " + types.label,
                       [=](std::uint64_t seed) {
                         return make(seed, types, {tokens, 16, 128}, 1);
                       },
                       2 * elements * to_double(size_bytes(types.first)), 3 * elements});
    }
  return table;
}

}  // namespace sluice::runner
