#include "sluice/ops/mla_absorb_q.h"

#include "runner/case.h"
#include "runner/cases/mla_weights.h"

namespace sluice::runner {

namespace {

OpFile make(std::uint64_t seed, const LatentHeads& l, const WeightFormat& format) {
  Random random(seed);
  OpFile file;
  file.tensors["q_nope"] = normal(random, l.type, {l.tokens, l.heads, l.nope});
  if (l.per_head) {
    add_weight(file, random, "embed_q", {l.heads, l.rank, l.nope}, format, 0.05);
  } else {
    add_weight(file, random, "kv_b", {l.heads * (l.nope + l.v), l.rank}, format, 0.05);
    file.attributes["v"] = std::to_string(l.v);
  }
  return file;
}

}  // namespace

template <>
std::vector<Case> cases<ops::MlaAbsorbQ>() {
  std::vector<Case> table;
  for (const auto& [heads, format] : latent_cases())
    table.push_back(
        {name_of(heads, format), [l = heads, f = format](std::uint64_t seed) { return make(seed, l, f); }});
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::MlaAbsorbQ>() {
  std::vector<BenchCase> table;
  for (const bool per_head : {false, true})
    for (const std::int64_t tokens : {1, 512}) {
      const LatentHeads l{tokens, 128, 128, 128, 512, ops::DType::bf16, per_head};
      const WeightFormat format = affine(4, 64);
      const double weights = 128.0 * 128 * 512;
      table.push_back(
          {name_of(l, format), [=](std::uint64_t seed) { return make(seed, l, format); },
           weights * bytes_per_value(format) + static_cast<double>(tokens) * 128 * (128 + 512) * 2,
           2 * weights * static_cast<double>(tokens)});
    }
  return table;
}

}  // namespace sluice::runner
