// Shapes of multi-head latent attention for the tables of mla_absorb_q and mla_project_out.
#pragma once

#include "runner/cases/weight_formats.h"

namespace sluice::runner {

struct LatentHeads {
  std::int64_t tokens;
  std::int64_t heads;
  std::int64_t nope;
  std::int64_t v;
  std::int64_t rank;
  ops::DType type = ops::DType::f32;
  bool per_head = false;  // embed_q or unembed_out, not kv_b
};

inline std::string name_of(const LatentHeads& l, const WeightFormat& format) {
  return fmt::format("{} tokens, {} heads, nope {} v {} rank {} {} {} {}", l.tokens, l.heads, l.nope, l.v,
                     l.rank, l.per_head ? "per head" : "kv_b", label(format), name(l.type));
}

inline std::vector<std::pair<LatentHeads, WeightFormat>> latent_cases() {
  using ops::DType;
  std::vector<std::pair<LatentHeads, WeightFormat>> table;
  for (const bool per_head : {false, true}) {
    for (const WeightFormat& format : all_formats())
      table.push_back({{2, 3, 128, 128, 128, DType::f32, per_head}, format});
    for (const WeightFormat& format : common_formats())
      for (const DType type : {DType::f32, DType::bf16}) {
        table.push_back({{1, 2, 64, 64, 576, type, per_head}, format});
        table.push_back({{17, 3, 192, 64, 64, type, per_head}, format});
      }
    table.push_back({{5, 2, 7, 3, 11, DType::f32, per_head}, dense(DType::bf16)});
    table.push_back({{4, 1, 1, 1, 1, DType::f32, per_head}, dense(DType::f32)});
  }
  return table;
}

}  // namespace sluice::runner
