// mla_absorb_q and mla_project_out multiply by the two halves of one weight, kv_b, so they share a table.
#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/cases/weight_formats.h"
#include "sluice/ops/linear/mla_absorb_q.h"
#include "sluice/ops/linear/mla_project_out.h"

namespace sluice::runner {

namespace {

using ops::DType;

struct LatentHeads {
  std::int64_t tokens;
  std::int64_t heads;
  std::int64_t nope;
  std::int64_t v;
  std::int64_t rank;
  DType type = DType::f32;
  bool per_head = false;  // embed_q or unembed_out, not kv_b
};

using Make = OpFile(std::uint64_t seed, const LatentHeads& l, const WeightFormat& format);

void add_kv_b(OpFile& file, Random& random, const LatentHeads& l, const WeightFormat& format) {
  add_weight(file, random, "kv_b", {l.heads * (l.nope + l.v), l.rank}, format, 0.05);
}

OpFile make_absorb(std::uint64_t seed, const LatentHeads& l, const WeightFormat& format) {
  Random random(seed);
  OpFile file;
  file.tensors["q_nope"] = normal(random, l.type, {l.tokens, l.heads, l.nope});
  if (l.per_head) {
    add_weight(file, random, "embed_q", {l.heads, l.rank, l.nope}, format, 0.05);
  } else {
    add_kv_b(file, random, l, format);
    file.attributes["v"] = std::to_string(l.v);
  }
  return file;
}

OpFile make_project(std::uint64_t seed, const LatentHeads& l, const WeightFormat& format) {
  Random random(seed);
  OpFile file;
  file.tensors["latent"] = normal(random, l.type, {l.tokens, l.heads, l.rank});
  if (l.per_head) {
    add_weight(file, random, "unembed_out", {l.heads, l.v, l.rank}, format, 0.05);
  } else {
    add_kv_b(file, random, l, format);
    file.attributes["nope"] = std::to_string(l.nope);
  }
  return file;
}

std::string name_of(const LatentHeads& l, const WeightFormat& format) {
  return fmt::format("{} tokens, {} heads, nope {} v {} rank {} {} {} {}", l.tokens, l.heads, l.nope, l.v,
                     l.rank, l.per_head ? "per head" : "kv_b", label(format), name(l.type));
}

std::vector<Case> table(Make* make) {
  std::vector<Case> table;
  const auto add = [&](const LatentHeads& l, const WeightFormat& format) {
    table.push_back({name_of(l, format), [=](std::uint64_t seed) { return make(seed, l, format); }});
  };
  for (const bool per_head : {false, true}) {
    for (const WeightFormat& format : all_formats()) add({2, 3, 128, 128, 128, DType::f32, per_head}, format);
    for (const WeightFormat& format : common_formats())
      for (const DType type : {DType::f32, DType::bf16}) {
        add({1, 2, 64, 64, 576, type, per_head}, format);
        add({17, 3, 192, 64, 64, type, per_head}, format);
      }
    add({5, 2, 7, 3, 11, DType::f32, per_head}, dense(DType::bf16));
    add({4, 1, 1, 1, 1, DType::f32, per_head}, dense(DType::f32));
  }
  return table;
}

std::vector<BenchCase> bench_table(Make* make) {
  std::vector<BenchCase> table;
  for (const bool per_head : {false, true})
    for (const std::int64_t tokens : {1, 512}) {
      const LatentHeads l{tokens, 128, 128, 128, 512, DType::bf16, per_head};
      const WeightFormat format = affine(4, 64);
      const double weights = 128.0 * 128 * 512;
      table.push_back({name_of(l, format), [=](std::uint64_t seed) { return make(seed, l, format); },
                       weights * bytes_per_value(format) + to_double(tokens) * 128 * (128 + 512) * 2,
                       2 * weights * to_double(tokens)});
    }
  return table;
}

}  // namespace

template <>
std::vector<Case> cases<ops::MlaAbsorbQ>() {
  return table(make_absorb);
}
template <>
std::vector<BenchCase> bench_cases<ops::MlaAbsorbQ>() {
  return bench_table(make_absorb);
}

template <>
std::vector<Case> cases<ops::MlaProjectOut>() {
  return table(make_project);
}
template <>
std::vector<BenchCase> bench_cases<ops::MlaProjectOut>() {
  return bench_table(make_project);
}

}  // namespace sluice::runner
