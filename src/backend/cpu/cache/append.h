// New tokens into the rows of a cache: a copy, or a conversion between F32 and BF16. Every byte is read and
// written once.
#pragma once

#include "backend/cpu/runtime/context.h"
#include "ops/sequences.h"

namespace sluice::backend::cpu::cache {

// Every row (last dimension) of two tensors of one shape.
void copy_rows(const ops::ConstView& from, const ops::View& to);

// tokens [T,..] into rows start.. of a cache [S,..], or of each sequence's cache in a pool [P,S,..].
template <class Op>
void append(Context& context, const Op& op, const ops::ConstView& tokens, const ops::View& pool) {
  const ops::Sequences sequences(op, tokens.dim(0));
  const std::int64_t grain =
      1 + 16384 / (tokens.elements() / tokens.dim(0));  // enough to pay for waking a thread
  for (std::int64_t b = 0; b < sequences.count(); ++b) {
    const ops::Sequence sequence = sequences[b];
    const ops::View cache = sequences.part(pool, sequence);
    const std::int64_t start = ops::Sequences::value(op.start, b);
    context.pool().parallel_for(0, sequence.tokens(), grain, [&](std::int64_t begin, std::int64_t end, int) {
      copy_rows(tokens.rows(sequence.begin + begin, end - begin), cache.rows(start + begin, end - begin));
    });
  }
}

}  // namespace sluice::backend::cpu::cache
