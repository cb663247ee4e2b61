// The tokens of one forward pass and the sequences they belong to.
#pragma once

#include "sluice/ops/field.h"
#include "state/layer_state.h"

namespace sluice::layers {

struct Batch {
  std::int64_t tokens = 0;
  ops::ConstView ids;        // I32 [T]
  ops::ConstView positions;  // I32 [T]
  // Several sequences: all three I32; one sequence: absent, and `start` is its number of past tokens.
  ops::ConstView seq_starts;
  ops::ConstView slots;
  ops::SequenceValue start;
  std::int64_t slot = 0;  // of the one sequence

  bool several() const { return seq_starts.present(); }
  // A layer's state as ops take it: the whole pool for several sequences, the slot's part for one.
  ops::View of(const ops::View& pool) const { return several() ? pool : pool[slot]; }
};

}  // namespace sluice::layers
