// The tokens of one forward pass and their sequences, in the form that ops take.
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
  // Sequences in slots of a pool: I32 [N+1], I32 [N], and their past lengths I32 [N]. All are absent if the
  // pass is a prompt of one sequence: then `start` is its past length and `slot` its slot.
  ops::ConstView seq_starts;
  ops::ConstView slots;
  ops::SequenceValue start;
  std::int64_t slot = 0;
  // Page tables of the caches: I32 [slots, pages], or [pages] for a single sequence.
  ops::ConstView page_table;
  // Tokens whose logits are wanted; empty: the last ones, as many as there is room for.
  std::vector<std::int64_t> logit_rows;
  // Where to copy recurrent states on the way: I32, for each snapshot place of the pool the tokens of the
  // pass before the copy, or -1; absent: nowhere. Rising, except for the -1.
  ops::ConstView save_at;
  std::int64_t saved_behind = 0;  // number of slots before the snapshot places
  bool replayed = false;          // a prompt computed as if its tokens had been generated
  std::int64_t number = 0;        // number of this pass, if nodes share the layers

  bool pooled() const { return seq_starts.present(); }
  // Whether tokens read all earlier ones from the caches only, including those of the pass.
  bool generated() const { return phase == ops::Phase::decode || replayed; }
  // A recurrent state in the form that ops take: the whole pool, or the slot's part of it.
  ops::View state(const ops::View& pool) const {
    if (!pooled()) return pool[slot];
    return save_at.present() ? pool.rows(0, saved_behind) : pool;
  }
  // Its snapshot places.
  ops::View saved(const ops::View& pool) const {
    return save_at.present() ? pool.rows(saved_behind, save_at.dim(0)) : ops::View();
  }
};

}  // namespace sluice::layers
