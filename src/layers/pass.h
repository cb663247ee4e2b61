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
  // Of the caches: I32 [slots, pages], or [pages] of the one sequence.
  ops::ConstView page_table;
  // Tokens whose logits are wanted; empty: the last ones, as many as there is room for.
  std::vector<std::int64_t> logit_rows;
  // Where copies of recurrent states are taken on the way: I32, by place behind the slots of a pool the
  // tokens of the pass before it, or -1; absent: nowhere. Rising apart from those.
  ops::ConstView save_at;
  std::int64_t saved_behind = 0;  // so many slots
  bool replayed = false;          // a prompt computed as if its tokens had been generated
  std::int64_t number = 0;        // where nodes share the layers: of this pass among all

  bool pooled() const { return seq_starts.present(); }
  // Whether tokens see those before them through the caches alone, those of the pass too.
  bool generated() const { return phase == ops::Phase::decode || replayed; }
  // A recurrent state as ops take it: the whole pool, or the slot's part of it.
  ops::View state(const ops::View& pool) const {
    if (!pooled()) return pool[slot];
    return save_at.present() ? pool.rows(0, saved_behind) : pool;
  }
  // The places for copies of it.
  ops::View saved(const ops::View& pool) const {
    return save_at.present() ? pool.rows(saved_behind, save_at.dim(0)) : ops::View();
  }
};

}  // namespace sluice::layers
