#include "sluice/ops/linear/gate_up_swiglu.h"

#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/cases/weight_formats.h"

namespace sluice::runner {

namespace {

using ops::DType;

struct Block {
  std::int64_t tokens;
  std::int64_t outputs;
  std::int64_t inputs;
  DType type = DType::f32;
  double scale = 1;  // of x
};

OpFile make(std::uint64_t seed, const Block& b, const WeightFormat& gate, const WeightFormat& up) {
  Random random(seed);
  OpFile file;
  file.tensors["x"] = normal(random, b.type, {b.tokens, b.inputs}, b.scale);
  add_weight(file, random, "gate_w", {b.outputs, b.inputs}, gate, 0.05);
  add_weight(file, random, "up_w", {b.outputs, b.inputs}, up, 0.05);
  return file;
}

std::string name_of(const Block& b, const WeightFormat& gate, const WeightFormat& up) {
  return fmt::format("{} x {} x {} {}{} {}{}", b.tokens, b.outputs, b.inputs, label(gate),
                     label(gate) == label(up) ? "" : " and " + label(up), name(b.type),
                     b.scale == 1 ? "" : fmt::format(" of size {}", b.scale));
}

}  // namespace

template <>
std::vector<Case> cases<ops::GateUpSwiglu>() {
  std::vector<Case> table;
  const auto add = [&](Block b, WeightFormat gate, WeightFormat up) {
    table.push_back({name_of(b, gate, up), [=](std::uint64_t seed) { return make(seed, b, gate, up); }});
  };
  for (const WeightFormat& format : common_formats()) {
    for (const DType type : {DType::f32, DType::bf16})
      for (const std::int64_t tokens : {1, 2, 65}) add({tokens, 21, 384, type}, format, format);
    add({3, 1, 64}, format, format);
    add({3, 9, 128, DType::f32, 1e4}, format, format);   // silu saturates
    add({3, 9, 128, DType::f32, 1e-8}, format, format);  // silu is half its argument
  }
  for (const DType type : {DType::f32, DType::bf16})  // rows of complete blocks of scales
    add({70, 139, 512, type}, affine(4, 128), affine(4, 128));
  add({5, 13, 256}, affine(4, 64), affine(6, 128));
  add({5, 13, 256, DType::bf16}, affine(8, 32), dense(DType::bf16));
  add({1, 13, 256}, affine(4, 32), affine(4, 128));
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::GateUpSwiglu>() {
  std::vector<BenchCase> table;
  for (const std::int64_t tokens : {1, 512}) {
    const Block b{tokens, 4096, 2048, DType::bf16};
    const WeightFormat format = affine(4, 64);
    const double weights = 2.0 * 4096 * 2048;
    table.push_back({name_of(b, format, format),
                     [=](std::uint64_t seed) { return make(seed, b, format, format); },
                     weights * bytes_per_value(format) + to_double(tokens) * (4096 + 2048) * 2,
                     2 * weights * to_double(tokens)});
  }
  return table;
}

}  // namespace sluice::runner
