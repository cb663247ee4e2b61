#include "sluice/ops/pointwise/gated_rms_norm.h"

#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/cases/element_type.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

OpFile make(std::uint64_t seed, const TypePair& types, const ops::Shape& shape, double scale,
            double gate_scale) {
  Random random(seed);
  OpFile file;
  file.tensors["x"] = normal(random, types.first, shape, scale);
  file.tensors["z"] = normal(random, types.second, shape, gate_scale);
  file.tensors["weight"] = normal(random, ops::DType::bf16, {shape.back()}, 0.2, 1);
  file.attributes["eps"] = "1e-6";
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::GatedRmsNorm>() {
  std::vector<Case> table;
  for (const TypePair& types : type_pairs()) {
    const auto add = [&](const std::string& label, const ops::Shape& shape, double scale, double gate_scale) {
      table.push_back({label + " " + types.label,
                       [=](std::uint64_t seed) { return make(seed, types, shape, scale, gate_scale); }});
    };
    for (const std::int64_t tokens : {1, 2, 65})
      for (const std::int64_t width : {1, 37, 128})
        add(std::to_string(tokens) + " tokens of 3 x " + std::to_string(width), {tokens, 3, width}, 1, 1);
    add("saturated gate", {4, 2, 64}, 1, 80);
    add("huge", {4, 2, 64}, 1e15, 1);
    add("squares beyond F32", {4, 2, 64}, 1e30, 1);
    add("tiny", {4, 2, 64}, 1e-15, 1);
  }
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::GatedRmsNorm>() {
  std::vector<BenchCase> table;
  for (const std::int64_t tokens : {1, 512})
    for (const TypePair& types : {type_pairs()[0], type_pairs()[1]}) {
      const double elements = to_double(tokens) * 32 * 128;
      table.push_back({std::to_string(tokens) + " x 32 x 128 " + types.label,
                       [=](std::uint64_t seed) {
                         return make(seed, types, {tokens, 32, 128}, 1, 1);
                       },
                       3 * elements * to_double(size_bytes(types.first)) + 128 * 2, 9 * elements});
    }
  return table;
}

}  // namespace sluice::runner
