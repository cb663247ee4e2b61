// The sequences and tokens of one pass.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sluice/ops/phase.h"

namespace sluice::engine {

// Tokens of some sequences in one group of slots. A sequence's results do not depend on the others.
struct Batch {
  struct Sequence {
    std::int32_t slot = 0;
    std::int64_t past = 0;              // tokens before these
    std::span<const std::int32_t> ids;  // at least one
    std::int64_t rows = 1;              // number of its last tokens whose logits are wanted
  };
  // Prefill, or decode with one generated token per sequence.
  ops::Phase phase = ops::Phase::prefill;
  std::vector<Sequence> sequences;
  // For a prompt: read every row from the caches, including the tokens' own, as if each had been generated,
  // so that packed caches show their full error.
  bool replayed = false;
  // Where to copy a prompt's recurrent states on the way: after tokens of the batch that are multiples of 64
  // in their sequence, to the pool's snapshot places; both in rising order.
  struct Save {
    std::int64_t tokens = 0;
    std::int32_t place = 0;
  };
  std::vector<Save> saves = {};

  std::int64_t tokens() const {
    std::int64_t count = 0;
    for (const Sequence& sequence : sequences) count += std::ssize(sequence.ids);
    return count;
  }
  std::int64_t rows() const {
    std::int64_t count = 0;
    for (const Sequence& sequence : sequences) count += sequence.rows;
    return count;
  }
};

}  // namespace sluice::engine
