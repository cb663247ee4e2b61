#include "sluice/ops/linear/embed.h"

#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/cases/weight_formats.h"

namespace sluice::runner {

namespace {

OpFile make(std::uint64_t seed, std::int64_t tokens, std::int64_t rows, std::int64_t width,
            const WeightFormat& format) {
  Random random(seed);
  OpFile file;
  add_weight(file, random, "table", {rows, width}, format, 1);
  file.tensors["ids"] = integers(random, {tokens}, rows);
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::Embed>() {
  std::vector<Case> table;
  const auto add = [&](std::int64_t tokens, std::int64_t rows, std::int64_t width, WeightFormat format) {
    table.push_back({fmt::format("{} of {} x {} {}", tokens, rows, width, label(format)),
                     [=](std::uint64_t seed) { return make(seed, tokens, rows, width, format); }});
  };
  for (const WeightFormat& format : all_formats())
    for (const std::int64_t width : {128, 1152}) add(9, 33, width, format);
  for (const WeightFormat& format : common_formats()) {
    add(1, 1, 64, format);
    add(65, 7, 192, format);
  }
  add(5, 5, 77, dense(ops::DType::bf16));
  add(5, 5, 1, dense(ops::DType::f16));
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::Embed>() {
  std::vector<BenchCase> table;
  const WeightFormat format = affine(4, 64);
  for (const std::int64_t tokens : {1, 512})
    table.push_back({fmt::format("{} of 65536 x 2048 {}", tokens, label(format)),
                     [=](std::uint64_t seed) { return make(seed, tokens, 65536, 2048, format); },
                     to_double(tokens) * 2048 * (bytes_per_value(format) + 4), to_double(tokens) * 2048 * 2});
  return table;
}

}  // namespace sluice::runner
