#include "sluice/ops/pointwise/add_rms_norm.h"

#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/cases/element_type.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

OpFile make(std::uint64_t seed, const TypePair& types, const ops::Shape& shape, double scale) {
  Random random(seed);
  OpFile file;
  file.tensors["residual"] = normal(random, types.first, shape, scale);
  file.tensors["delta"] = normal(random, types.second, shape, scale / 2);
  file.tensors["weight"] = normal(random, ops::DType::bf16, {shape.back()}, 0.2, 1);
  file.attributes["eps"] = "1e-6";
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::AddRmsNorm>() {
  std::vector<Case> table;
  for (const TypePair& types : type_pairs()) {
    const auto add = [&](const std::string& label, const ops::Shape& shape, double scale) {
      table.push_back(
          {label + " " + types.label, [=](std::uint64_t seed) { return make(seed, types, shape, scale); }});
    };
    for (const std::int64_t rows : {1, 2, 64, 65})
      for (const std::int64_t width : {1, 77, 256})
        add(std::to_string(rows) + " rows of " + std::to_string(width), {rows, width}, 1);
    add("wide", {2, 7168}, 1);
    add("huge", {4, 256}, 1e15);
    add("squares beyond F32", {4, 256}, 1e30);
    add("tiny", {4, 256}, 1e-15);
  }
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::AddRmsNorm>() {
  std::vector<BenchCase> table;
  for (const std::int64_t tokens : {1, 512})
    for (const TypePair& types : {type_pairs()[0], type_pairs()[1]}) {
      const double elements = to_double(tokens) * 2048;
      // Reads residual and delta, writes residual and out.
      table.push_back({std::to_string(tokens) + " x 2048 " + types.label,
                       [=](std::uint64_t seed) {
                         return make(seed, types, {tokens, 2048}, 1);
                       },
                       4 * elements * to_double(size_bytes(types.first)) + 2048 * 2, 5 * elements});
    }
  return table;
}

}  // namespace sluice::runner
