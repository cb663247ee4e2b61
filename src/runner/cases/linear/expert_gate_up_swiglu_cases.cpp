#include "sluice/ops/linear/expert_gate_up_swiglu.h"

#include "base/integer_cast.h"
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
};

OpFile make(std::uint64_t seed, const Layer& l, const WeightFormat& gate, const WeightFormat& up,
            bool distinct) {
  Random random(seed);
  OpFile file;
  file.tensors["x"] = normal(random, l.type, {l.tokens, l.inputs});
  file.tensors["experts"] = distinct ? distinct_experts(random, l.tokens, l.k, l.experts)
                                     : any_experts(random, l.tokens, l.k, l.experts);
  add_weight(file, random, "gate_w", {l.experts, l.outputs, l.inputs}, gate, 0.05);
  add_weight(file, random, "up_w", {l.experts, l.outputs, l.inputs}, up, 0.05);
  return file;
}

std::string name_of(const Layer& l, const WeightFormat& gate, const WeightFormat& up) {
  return fmt::format("{} tokens, {} of {} experts {} x {} {}{} {}", l.tokens, l.k, l.experts, l.outputs,
                     l.inputs, label(gate), label(gate) == label(up) ? "" : " and " + label(up),
                     name(l.type));
}

}  // namespace

template <>
std::vector<Case> cases<ops::ExpertGateUpSwiglu>() {
  std::vector<Case> table;
  const auto add = [&](Layer l, WeightFormat gate, WeightFormat up) {
    table.push_back(
        {name_of(l, gate, up), [=](std::uint64_t seed) { return make(seed, l, gate, up, false); }});
  };
  for (const WeightFormat& format : common_formats())
    for (const DType type : {DType::f32, DType::bf16}) {
      add({1, 8, 16, 19, 192, type}, format, format);
      add({2, 2, 3, 1, 64, type}, format, format);
      add({65, 3, 7, 19, 192, type}, format, format);
    }
  for (const DType type : {DType::f32, DType::bf16})  // rows of complete blocks of scales
    add({65, 3, 7, 139, 256, type}, affine(4, 64), affine(4, 64));
  add({9, 2, 4, 13, 256}, affine(4, 64), affine(5, 32));
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::ExpertGateUpSwiglu>() {
  std::vector<BenchCase> table;
  for (const std::int64_t tokens : {1, 512}) {
    const Layer l{tokens, 8, 256, 512, 2048, DType::bf16};
    const WeightFormat format = affine(4, 64);
    const double choices = tokens * l.k;
    const double read = tokens == 1 ? 8.0 : 256.0;  // 512 tokens of 8 choices reach every expert
    table.push_back(
        {name_of(l, format, format), [=](std::uint64_t seed) { return make(seed, l, format, format, true); },
         2 * read * 512 * 2048 * bytes_per_value(format) + (to_double(tokens) * 2048 + choices * 512) * 2,
         4 * choices * 2048 * 512});
  }
  return table;
}

}  // namespace sluice::runner
