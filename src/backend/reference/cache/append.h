// Writing new tokens into the rows of a cache of any layout.
#pragma once

#include "backend/reference/runtime/element.h"
#include "backend/reference/runtime/rows.h"
#include "ops/sequences.h"

namespace sluice::backend::reference::cache {

template <class Op>
void append(const Op& op, const ops::ConstView& tokens, const ops::View& pool) {
  const ops::Sequences sequences(op, tokens.dim(0));
  for (std::int64_t b = 0; b < sequences.count(); ++b) {
    const ops::Sequence sequence = sequences[b];
    const auto cache = sequences.cache(pool, sequence);
    const std::int64_t start = ops::Sequences::value(op.start, b);
    for (std::int64_t t = sequence.begin; t < sequence.end; ++t) {
      const ops::ConstView from = tokens[t];
      const ops::View to = cache[start + t - sequence.begin];
      for_each_row(from.shape, [&](const RowIndex& row) {
        for (std::int64_t i = 0; i < from.shape.back(); ++i) set(row.of(to), get(row.of(from), i), i);
      });
    }
  }
}

}  // namespace sluice::backend::reference::cache
