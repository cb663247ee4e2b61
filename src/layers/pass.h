// The tokens of one forward pass and the sequences they belong to, as ops take them.
#pragma once

#include "sluice/ops/field.h"
#include "sluice/ops/phase.h"
#include "state/layer_state.h"

namespace sluice::layers {

struct Pass {
  ops::Phase phase = ops::Phase::prefill;
  std::int64_t tokens = 0;
  ops::ConstView ids;        // I32 [T]
  ops::ConstView positions;  // I32 [T]
  // Sequences in slots of a pool: I32 [N+1], I32 [N], and their past lengths I32 [N]. All are absent where a
  // prompt of one sequence is the whole pass: then `start` is its past length and `slot` its place.
  ops::ConstView seq_starts;
  ops::ConstView slots;
  ops::SequenceValue start;
  std::int64_t slot = 0;
  // Where caches lie in pages: I32 [slots, pages], or [pages] of the one sequence.
  ops::ConstView page_table;
  // Tokens whose logits are wanted; empty: the last ones, as many as there is room for.
  std::vector<std::int64_t> logit_rows;
  bool replayed = false;  // a prompt computed as if its tokens had been generated

  bool pooled() const { return seq_starts.present(); }
  // Whether tokens see those before them through the caches alone, those of the pass too.
  bool generated() const { return phase == ops::Phase::decode || replayed; }
  // A recurrent state as ops take it: the whole pool, or the slot's part of it.
  ops::View state(const ops::View& pool) const { return pooled() ? pool : pool[slot]; }
  // A cache: the same, but all pages where it lies in pages.
  ops::View cache(const ops::View& pool) const { return page_table.present() ? pool : state(pool); }
};

}  // namespace sluice::layers
