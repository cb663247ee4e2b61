// The products of a tile of rows with the queries of a group, computed from codes, and their memory. Included
// once per instruction set.
#if defined(SLUICE_BACKEND_CPU_CODED_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_CODED_TILE_INL_H_
#undef SLUICE_BACKEND_CPU_CODED_TILE_INL_H_
#else
#define SLUICE_BACKEND_CPU_CODED_TILE_INL_H_
#endif

#include <algorithm>

#include "backend/cpu/attention/packed/call.h"
#include "backend/cpu/attention/packed/word_products-inl.h"
#include "backend/cpu/runtime/context.h"
#include "base/integer_cast.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::attention::packed::HWY_NAMESPACE {

using namespace attention::HWY_NAMESPACE;

// Memory of one worker.
struct PartScratch {
  PartScratch(const PackedAttention& call, Context& context, int worker) {
    const std::size_t queries_count = call.tokens_per_group * call.heads_per_kv;
    const std::size_t rows = call.tile_rows;
    score_stride = rows + 16;
    const std::size_t rope_floats = queries_count * padded(call.rope_width);
    // Queries are staged in the tile before they are packed for AMX.
    const std::size_t tile_floats = std::max(rows, call.by_units() ? queries_count : 0) * call.width;
    const std::size_t floats =
        rope_floats + queries_count * (call.width + score_stride) + tile_floats + 2 * rows;
    const bf16::Workspace::Sizes sizes{{queries_count}, call.width, call.width};
    const std::size_t unit_bytes =
        call.products == CodeProducts::numbers  ? bf16::Workspace::bytes(sizes)
        : call.products == CodeProducts::digits ? DigitSpace::bytes(queries_count, call.width)
        : call.products == CodeProducts::words  ? WordSpace::bytes(queries_count, call.width)
                                                : 0;
    std::byte* const memory = context.worker_scratch(worker, unit_bytes + floats * sizeof(float));
    units = bf16::Workspace(sizes, memory);
    digits = DigitSpace(queries_count, call.width, memory);
    words = WordSpace(queries_count, call.width, memory);
    rope_queries = reinterpret_cast<float*>(memory + unit_bytes);
    queries = rope_queries + rope_floats;
    tile = queries + queries_count * call.width;
    scores = tile + tile_floats;
    key_factors = scores + queries_count * score_stride;
    value_factors = key_factors + rows;
  }
  std::size_t score_stride;
  // One of these three is used.
  bf16::Workspace units;
  DigitSpace digits;
  WordSpace words;
  float* rope_queries;   // [queries,padded(R)], scaled
  float* queries;        // [queries,D]
  float* tile;           // [rows,D], levels
  float* scores;         // [queries,score_stride]
  float* key_factors;    // [rows]
  float* value_factors;  // [rows]
};

// Logical rows first + [begin, end), from codes or as passed by the call.
struct TileRows {
  std::int64_t first;
  std::int64_t begin;
  std::int64_t end;
  bool own;
};

// The codes of a tile; rows that are not to be read are replaced by the nearest one that is.
struct CodeRows {
  const std::uint8_t* at[bf16::kValueRows];
  CodeRows(const PackedRows& rows, const TileRows& of) {
    rows.for_each(of.first, of.begin, of.end,
                  [&](std::int64_t j, const std::uint8_t* codes, float) { at[j] = codes; });
    std::fill(at, at + of.begin, at[of.begin]);
    std::fill(at + of.end, at + bf16::kValueRows, at[of.end - 1]);
  }
};

// The codes of the tile from row `first` on, which is probably the next.
HWY_INLINE AttendAhead ahead_of(const PackedAttention& call, const PackedRows& keys, const PackedRows& values,
                                std::int64_t first) {
  const auto rows = [&](const PackedRows& side) {
    return AttendAhead::Rows{reinterpret_cast<std::uintptr_t>(side.codes_ahead(first)), 8 * side.stride,
                             to_size(8 * side.stride)};
  };
  return {rows(keys), rows(values), to_size(call.tile_rows / 8),
          call.by_units() ? AttendAhead::Order::quarters : AttendAhead::Order::rows};
}

// Scores of a tile with AMX.
HWY_INLINE void score_by_units(const PackedAttention& call, const QueryGroup& group, const TileRows& of,
                               const PartScratch& scratch, AttendAhead& ahead) {
  const std::size_t width = call.width;
  const std::size_t queries = call.queries(group);
  constexpr std::int64_t kRows = bf16::kKeyRows;
  const CodeRows codes(call.rows(call.op.keys, group), of);
  for (std::int64_t j = of.begin / kRows * kRows; j < of.end; j += kRows) {
    const bf16::Workspace& units = scratch.units;
    if (call.products == CodeProducts::digits) {
      score_digits({codes.at + j, width}, queries, scratch.digits, ahead, scratch.scores + j,
                   scratch.score_stride);
      continue;
    }
    ahead.fetch(width / 8);
    multiply_coded_keys(codes.at + j, width, units.queries, {queries}, units.prepared, units.dots);
    bf16::store_scores(units.dots, {queries}, scratch.scores + j, scratch.score_stride);
  }
}

// Adds a tile to the sums with AMX.
HWY_INLINE void add_by_units(const PackedAttention& call, const QueryGroup& group, const TileRows& of,
                             const PartScratch& scratch, AttendAhead& ahead) {
  const std::size_t width = call.width;
  const std::size_t queries = call.queries(group);
  const CodeRows codes(call.rows(call.op.values, group), of);
  if (call.products == CodeProducts::digits) {
    constexpr std::int64_t kStep = kDigitStep;
    add_digits({codes.at, width}, {scratch.scores, scratch.score_stride, queries, 1},
               to_size(of.begin / kStep), to_size((of.end + kStep - 1) / kStep), scratch.digits, ahead);
    return;
  }
  const bf16::Workspace& units = scratch.units;
  const std::size_t from = to_size(of.begin) / bf16::kStep;
  const std::size_t to = (to_size(of.end) + bf16::kStep - 1) / bf16::kStep;
  split_weights(scratch.scores, scratch.score_stride, queries, from, to, units.weights);
  for (std::size_t column = 0; column < width; column += bf16::kStrip)
    add_coded_values({codes.at, width}, column, from, to, queries, units);
}

#if HWY_ARCH_X86
// Calls f(block, codes) for the visible blocks of a tile.
template <class F>
HWY_INLINE void for_each_block(const PackedRows& rows, std::int64_t bits, const TileRows& of,
                               AttendAhead& ahead, F&& f) {
  constexpr std::int64_t kRows = kBlockRows;
  for (std::int64_t j = of.begin / kRows * kRows; j < of.end; j += kRows)
    f(j, BlockCodes(rows, bits, {std::max<std::int64_t>(of.begin - j, 0), std::min(of.end - j, kRows)},
                    of.first + j, ahead));
}
#endif

// Scores of a tile from its codes.
HWY_INLINE void score_codes(const PackedAttention& call, const QueryGroup& group, const TileRows& of,
                            const PartScratch& scratch, AttendAhead& ahead) {
  if (call.by_units()) return score_by_units(call, group, of, scratch, ahead);
#if HWY_ARCH_X86
  const PackedRows rows = call.rows(call.op.keys, group);
  for_each_block(rows, call.op.keys.bits, of, ahead, [&](std::int64_t j, const BlockCodes& codes) HWY_ATTR {
    score_block(codes, to_size(call.queries(group)), scratch.words, scratch.scores + j, scratch.score_stride);
  });
#endif
}

// Adds a tile to the sums from its codes.
HWY_INLINE void add_codes(const PackedAttention& call, const QueryGroup& group, const TileRows& of,
                          const PartScratch& scratch, AttendAhead& ahead,
                          [[maybe_unused]] const Partial& to) {
  if (call.by_units()) return add_by_units(call, group, of, scratch, ahead);
#if HWY_ARCH_X86
  const PackedRows rows = call.rows(call.op.values, group);
  for_each_block(rows, call.op.values.bits, of, ahead, [&](std::int64_t j, const BlockCodes& codes) HWY_ATTR {
    add_block(codes, {scratch.scores + j, scratch.score_stride}, to_size(call.queries(group)), scratch.words,
              to.values);
  });
#endif
}

}  // namespace sluice::backend::cpu::attention::packed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
