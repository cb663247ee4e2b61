// Which sequences compute what in one pass.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sluice/ops/phase.h"

namespace sluice::engine {

// Tokens of some sequences of one group of slots. What a sequence computes does not depend on the others.
struct Batch {
  struct Sequence {
    std::int32_t slot = 0;
    std::int64_t past = 0;              // tokens before these
    std::span<const std::int32_t> ids;  // at least one
    std::int64_t rows = 1;              // logits wanted: of its last so many tokens
  };
  // Prompts, or generated tokens: one of each sequence.
  ops::Phase phase = ops::Phase::prefill;
  std::vector<Sequence> sequences;
  // Of a prompt: every row is read from the caches, the tokens' own too, as if each had been generated, so
  // that packed caches show their full error.
  bool replayed = false;
  // Where a prompt's recurrent states are copied on the way: behind tokens of the batch that are multiples of
  // 64 in their sequence, to places of the pool's snapshots; both rise.
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
