// Writes new tokens into the rows of a cache: a copy, or a conversion between F32 and BF16. Every byte is
// read and written once.
#pragma once

#include "backend/cpu/runtime/context.h"
#include "ops/sequences.h"

namespace sluice::backend::cpu::cache {

// Copies every row (last dimension) between two tensors of one shape.
void copy_rows(const Context& context, const ops::ConstView& from, const ops::View& to);

// Writes tokens [T,..] into rows start.. of a cache [S,..], or of each sequence's cache in a pool or in pages
// [P,S,..].
template <class Op>
void append(Context& context, const Op& op, const ops::ConstView& tokens, const ops::View& pool) {
  const ops::Sequences sequences(op, tokens.dim(0));
  const std::int64_t grain =
      1 + 16384 / (tokens.elements() / tokens.dim(0));  // enough to justify waking a thread
  for (std::int64_t b = 0; b < sequences.count(); ++b) {
    const ops::Sequence sequence = sequences[b];
    const auto cache = sequences.cache(pool, sequence);
    const std::int64_t start = ops::Sequences::value(op.start, b);
    context.pool().parallel_for(0, sequence.tokens(), grain, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end;) {
        const std::int64_t row = start + i;
        const std::int64_t count = cache.run(row, start + end);
        copy_rows(context, tokens.rows(sequence.begin + i, count),
                  cache.block(row).rows(cache.index(row), count));
        i += count;
      }
    });
  }
}

}  // namespace sluice::backend::cpu::cache
