#include "sluice/ops/linear/expert_matmul.h"

#include "runner/case.h"
#include "runner/cases/expert_choice.h"
#include "runner/cases/weight_formats.h"

namespace sluice::runner {

namespace {

using ops::DType;

struct Layer {
  std::int64_t tokens;
  std::int64_t k;
  std::int64_t experts;
  std::int64_t outputs;
  std::int64_t inputs;
  DType type = DType::f32;
  bool own_rows = true;  // x is [T,k,K], not [T,K]
};

OpFile make(std::uint64_t seed, const Layer& l, const WeightFormat& format, bool distinct) {
  Random random(seed);
  OpFile file;
  const ops::Shape shape = l.own_rows ? ops::Shape{l.tokens, l.k, l.inputs} : ops::Shape{l.tokens, l.inputs};
  file.tensors["x"] = normal(random, l.type, shape);
  file.tensors["experts"] = distinct ? distinct_experts(random, l.tokens, l.k, l.experts)
                                     : any_experts(random, l.tokens, l.k, l.experts);
  add_weight(file, random, "w", {l.experts, l.outputs, l.inputs}, format, 0.05);
  return file;
}

std::string name_of(const Layer& l, const WeightFormat& format) {
  return fmt::format("{} tokens, {} of {} experts {} x {} {} {}{}", l.tokens, l.k, l.experts, l.outputs,
                     l.inputs, label(format), name(l.type), l.own_rows ? "" : " shared x");
}

}  // namespace

template <>
std::vector<Case> cases<ops::ExpertMatmul>() {
  std::vector<Case> table;
  const auto add = [&](Layer l, WeightFormat format) {
    table.push_back({name_of(l, format), [=](std::uint64_t seed) { return make(seed, l, format, false); }});
  };
  for (const WeightFormat& format : all_formats()) add({3, 2, 4, 13, 256}, format);
  for (const int group : {64, 128})  // rows of complete blocks of scales
    for (const DType type : {DType::f32, DType::bf16})
      for (const bool own_rows : {true, false}) add({65, 3, 7, 139, 512, type, own_rows}, affine(4, group));
  for (const WeightFormat& format : common_formats())
    for (const bool own_rows : {true, false})
      for (const DType type : {DType::f32, DType::bf16}) {
        add({1, 1, 1, 5, 64, type, own_rows}, format);
        add({1, 8, 16, 19, 192, type, own_rows}, format);
        add({65, 3, 7, 19, 192, type, own_rows}, format);
        add({6, 4, 2, 9, 64, type, own_rows}, format);
      }
  add({33, 2, 3, 5, 77}, dense(DType::bf16));
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::ExpertMatmul>() {
  std::vector<BenchCase> table;
  for (const std::int64_t tokens : {1, 512}) {
    const Layer l{tokens, 8, 256, 2048, 512, DType::bf16, true};
    const WeightFormat format = affine(4, 64);
    const double choices = tokens * l.k;
    const double read = tokens == 1 ? 8.0 : 256.0;  // 512 tokens of 8 choices reach every expert
    table.push_back({name_of(l, format), [=](std::uint64_t seed) { return make(seed, l, format, true); },
                     read * 2048 * 512 * bytes_per_value(format) + choices * (2048 + 512) * 2,
                     2 * choices * 2048 * 512});
  }
  return table;
}

}  // namespace sluice::runner
