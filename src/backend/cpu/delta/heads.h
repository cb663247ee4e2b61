// How value heads of the delta rule share key heads.
#pragma once

#include "sluice/ops/delta/delta_rule.h"

namespace sluice::backend::cpu::delta {

inline std::int64_t key_head_of(const ops::DeltaRule& op, std::int64_t value_head) {
  const std::int64_t key_heads = op.k.dim(1);
  return op.heads == ops::DeltaHeads::block ? value_head / (op.v.dim(1) / key_heads) : value_head % key_heads;
}

// Value head number i of those that read `key_head`.
inline std::int64_t value_head_of(const ops::DeltaRule& op, std::int64_t key_head, std::int64_t i) {
  const std::int64_t key_heads = op.k.dim(1);
  return op.heads == ops::DeltaHeads::block ? key_head * (op.v.dim(1) / key_heads) + i
                                            : i * key_heads + key_head;
}

}  // namespace sluice::backend::cpu::delta
