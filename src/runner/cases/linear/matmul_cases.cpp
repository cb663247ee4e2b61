#include "sluice/ops/linear/matmul.h"

#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/cases/weight_formats.h"

namespace sluice::runner {

namespace {

using ops::DType;

struct Product {
  std::int64_t tokens;   // T
  std::int64_t outputs;  // N
  std::int64_t inputs;   // K
  DType type = DType::f32;
  double scale = 1;  // of x
};

OpFile make(std::uint64_t seed, const Product& p, const WeightFormat& format) {
  Random random(seed);
  OpFile file;
  file.tensors["x"] = normal(random, p.type, {p.tokens, p.inputs}, p.scale);
  add_weight(file, random, "w", {p.outputs, p.inputs}, format, 0.05);
  return file;
}

std::string name_of(const Product& p, const WeightFormat& format) {
  return fmt::format("{} x {} x {} {} {}{}", p.tokens, p.outputs, p.inputs, label(format), name(p.type),
                     p.scale == 1 ? "" : fmt::format(" of size {}", p.scale));
}

}  // namespace

template <>
std::vector<Case> cases<ops::Matmul>() {
  std::vector<Case> table;
  const auto add = [&](Product p, WeightFormat format) {
    table.push_back({name_of(p, format), [=](std::uint64_t seed) { return make(seed, p, format); }});
  };
  for (const WeightFormat& format : all_formats())
    for (const DType type : {DType::f32, DType::bf16}) {
      add({1, 37, 384, type}, format);
      add({7, 21, 640, type}, format);
    }
  for (const WeightFormat& format : common_formats()) {
    for (const std::int64_t tokens : {1, 2, 3, 4, 63, 64, 65, 257})
      add({tokens, 19, 576, DType::bf16}, format);
    add({5, 1, 64}, format);
    add({70, 9, 4096}, format);
    add({2, 3, 7168}, format);
    for (const double scale : {1e15, 1e-15}) add({4, 8, 256, DType::f32, scale}, format);
  }
  for (const DType type : {DType::f32, DType::bf16})  // rows of complete blocks of scales
    for (const std::int64_t tokens : {17, 33, 70}) add({tokens, 267, 512, type}, affine(4, 64));
  for (const DType type : {DType::f32, DType::bf16, DType::f16})
    for (const std::int64_t inputs : {1, 5, 31, 77, 513})
      for (const std::int64_t tokens : {1, 6}) add({tokens, 11, inputs}, dense(type));
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::Matmul>() {
  std::vector<BenchCase> table;
  const auto add = [&](Product p, WeightFormat format) {
    const double outputs = p.outputs;
    const double inputs = p.inputs;
    const double tokens = p.tokens;
    table.push_back({name_of(p, format), [=](std::uint64_t seed) { return make(seed, p, format); },
                     outputs * inputs * bytes_per_value(format) +
                         tokens * (inputs + outputs) * to_double(size_bytes(p.type)),
                     2 * tokens * outputs * inputs});
  };
  for (const WeightFormat& format :
       {affine(4, 64), affine(8, 64), dense(DType::bf16), dense(DType::f32), dense(DType::f16), affine(2, 64),
        affine(3, 64), affine(5, 64), affine(6, 64), packed(ops::QuantMode::mxfp4),
        packed(ops::QuantMode::mxfp8), packed(ops::QuantMode::nvfp4)})
    add({1, 4096, 4096, DType::bf16}, format);
  for (const std::int64_t tokens : {2, 4, 16}) add({tokens, 4096, 4096, DType::bf16}, affine(4, 64));
  for (const WeightFormat& format :
       {affine(4, 64), affine(8, 64), affine(3, 64), dense(DType::bf16), dense(DType::f32)})
    add({512, 4096, 4096, DType::bf16}, format);
  return table;
}

}  // namespace sluice::runner
