// The ops that rotate and append rows to a cache, as the two ops they combine.
#pragma once

#include "sluice/ops/cache/kv_append.h"
#include "sluice/ops/cache/qk_norm_rope_append.h"
#include "sluice/ops/cache/qk_norm_rope_turboquant_append.h"
#include "sluice/ops/cache/turboquant_append.h"
#include "sluice/ops/pointwise/qk_norm_rope.h"

namespace sluice::ops {

template <class Op>
QkNormRope turn_part(const Op& op) {
  return {.q = op.q,
          .k = op.k,
          .q_weight = op.q_weight,
          .k_weight = op.k_weight,
          .inv_freq = op.inv_freq,
          .positions = op.positions,
          .eps = op.eps,
          .mscale = op.mscale};
}

inline KvAppend append_part(const QkNormRopeAppend& op) {
  return {.k = op.k,
          .v = op.v,
          .k_cache = op.k_cache,
          .v_cache = op.v_cache,
          .seq_starts = op.seq_starts,
          .slots = op.slots,
          .page_table = op.page_table,
          .start = op.start};
}

inline TurboquantAppend append_part(const QkNormRopeTurboquantAppend& op) {
  return {.k = op.k,
          .v = op.v,
          .signs = op.signs,
          .k_codes = op.k_codes,
          .v_codes = op.v_codes,
          .k_norms = op.k_norms,
          .v_norms = op.v_norms,
          .seq_starts = op.seq_starts,
          .slots = op.slots,
          .page_table = op.page_table,
          .k_bits = op.k_bits,
          .v_bits = op.v_bits,
          .norm = op.norm,
          .start = op.start};
}

}  // namespace sluice::ops
