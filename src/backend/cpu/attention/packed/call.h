// Attention from packed caches, shared by turboquant_attention and mla_turboquant_attention: the call, its
// division into groups of queries and parts of rows, and the memory for each part's result.
#pragma once

#include <algorithm>
#include <span>

#include "backend/cpu/attention/packed/amx_bf16_q4.h"
#include "backend/cpu/attention/packed/amx_int8_q4.h"
#include "backend/cpu/runtime/context.h"
#include "base/function_ref.h"
#include "base/integer_cast.h"
#include "ops/sequences.h"
#include "sluice/ops/fresh_rows.h"

namespace sluice::backend::cpu::attention::packed {

// Codes and norms of keys or values, and the rows of the call's tokens if these are not read from codes.
struct PackedCache {
  ops::ConstView codes;   // [KH,S,bytes] or, pooled, [P,KH,S,bytes]
  ops::ConstView norms;   // the same without bytes
  ops::ConstView tokens;  // [T,KH,D], or absent
  std::int64_t bits;
  const float* rotated_tokens = nullptr;  // [T,KH,D], times sqrt(D); rows with NaN are zeros
  const float* token_norms = nullptr;     // [T,KH], 1 or NaN
};

struct PackedCall {
  ops::ConstView q;  // [T,H,D]
  ops::View out;     // [T,H,D]
  PackedCache keys;
  PackedCache values;         // the keys again if one row serves as both
  ops::ConstView rope_q;      // [T,H,R], or absent: added to the scores
  ops::ConstView rope_cache;  // [S,R] or, pooled, [P,S,R]
  ops::ConstView signs;
  ops::SequenceValue ring_start;
  std::int64_t window = 0;
  double scale = 1;
  bool rotated = false;
  bool shared_rows() const { return keys.codes.data == values.codes.data; }
};

// Logical rows per softmax part; a constant, so that results do not depend on the call.
inline constexpr std::int64_t kPartRows = 512;

struct RowRange {
  std::int64_t begin;
  std::int64_t end;
};

// Contiguous logical rows.
struct PackedRun {
  const std::uint8_t* codes;
  const float* norms;
  std::int64_t rows;
};

// One side of the cache for one KV head of one sequence.
struct PackedRows {
  const std::uint8_t* codes;
  std::int64_t stride;  // bytes between slots
  const float* norms;
  std::int64_t slots;  // of the ring, or per page
  std::int64_t ring_start;
  const float* tokens;        // logical rows from first_token on, instead of levels
  const float* token_norms;   // their norms
  std::int64_t token_floats;  // floats between tokens
  std::int64_t kv_heads;
  std::int64_t first_token;

  const std::int32_t* pages = nullptr;  // null: a ring
  std::int64_t page_count = 0;
  std::int64_t code_page_stride = 0;
  std::int64_t norm_page_stride = 0;

  // The contiguous rows at the start of [row, end).
  PackedRun run(std::int64_t row, std::int64_t end) const {
    if (pages == nullptr) {
      const std::int64_t at = ring_start + row < slots ? ring_start + row : ring_start + row - slots;
      return {codes + at * stride, norms + at, std::min(end - row, slots - at)};
    }
    const std::int64_t page = pages[row / slots];
    const std::int64_t at = row % slots;
    return {codes + page * code_page_stride + at * stride, norms + page * norm_page_stride + at,
            std::min(end - row, slots - at)};
  }
  // Calls f(j, codes, norm) for the rows first + [begin, end).
  template <class F>
  void for_each(std::int64_t first, std::int64_t begin, std::int64_t end, F&& f) const {
    for (std::int64_t j = begin; j < end;) {
      const PackedRun lying = run(first + j, first + end);
      for (std::int64_t i = 0; i < lying.rows; ++i, ++j) f(j, lying.codes + i * stride, lying.norms[i]);
    }
  }
  // The address of codes to prefetch, which need not exist.
  const std::uint8_t* codes_ahead(std::int64_t row) const {
    return pages != nullptr && row / slots >= page_count ? codes : run(row, row + 1).codes;
  }
};

// Neighbouring tokens of a sequence with all query heads of one KV head: the query vectors that share one
// read of the rows.
struct QueryGroup {
  std::int64_t sequence;
  std::int64_t kv_head;
  std::int64_t first;  // token in the call
  std::int64_t tokens;
  std::int64_t first_end;        // end of the rows that the first token sees
  std::int64_t first_own;        // first row that the call itself passes; if there is none, past all rows
  RowRange rows;                 // visible to any of the tokens, read from codes
  RowRange own;                  // visible to any of the tokens, as passed by the call
  std::int64_t first_item = 0;   // of its parts in the wave
  std::int64_t first_query = 0;  // of its query vectors in the wave
  float* partials = nullptr;

  std::int64_t first_part() const { return rows.begin / kPartRows; }
  std::int64_t coded_parts() const {
    return rows.begin < rows.end ? (rows.end + kPartRows - 1) / kPartRows - first_part() : 0;
  }
  // The call's own rows are a part after those of codes.
  std::int64_t parts() const { return coded_parts() + (own.begin < own.end ? 1 : 0); }
};

// The result of a part for each query vector of a group.
struct Partial {
  float* values;   // [queries,D], weighted by exp(score - maximum)
  float* maximum;  // [queries]
  float* total;    // [queries], the sum of the weights
};

// How codes are multiplied: vectors use their F32 levels, or words of integers; AMX uses two BF16 numbers or
// two bytes per level.
enum class CodeProducts { vectors, words, numbers, digits };

struct PackedAttention {
  // `lengths(b)` is the number of rows of sequence b, including its tokens' own.
  PackedAttention(const PackedCall& op, const ops::Sequences& sequences,
                  FunctionRef<std::int64_t(std::int64_t)> lengths, const Context& context);

  const PackedCall& op;
  ops::Sequences sequences;
  FunctionRef<std::int64_t(std::int64_t)> lengths;
  std::size_t width;
  std::size_t rope_width;  // 0: none
  std::int64_t kv_heads;
  std::int64_t heads_per_kv;
  std::int64_t tokens_per_group;
  CodeProducts products;
  std::int64_t tile_rows;  // rows whose levels are held at once
  float root;              // 1/sqrt(D)
  float score_factor;      // scale/sqrt(D)
  const float* signs = nullptr;

  bool by_units() const { return products == CodeProducts::numbers || products == CodeProducts::digits; }
  std::int64_t queries(const QueryGroup& group) const { return group.tokens * heads_per_kv; }
  // Query vector r of a group as a row of q and out.
  std::int64_t query_row(const QueryGroup& group, std::int64_t r) const {
    return (group.first + r / heads_per_kv) * op.q.dim(1) + group.kv_head * heads_per_kv + r % heads_per_kv;
  }
  // The logical rows that query vector r of a group sees, from codes or as passed by the call.
  RowRange sight(const QueryGroup& group, std::int64_t r, bool own) const {
    const std::int64_t end = group.first_end + r / heads_per_kv;
    const std::int64_t begin = op.window > 0 ? std::max<std::int64_t>(0, end - op.window) : 0;
    const std::int64_t fresh = std::min(end, ops::first_fresh_row(end - 1, group.first_own));
    return own ? RowRange{std::max(begin, fresh), end} : RowRange{begin, fresh};
  }
  PackedRows rows(const PackedCache& cache, const QueryGroup& group) const;

  std::size_t partial_floats(const QueryGroup& group) const { return to_size(queries(group)) * (width + 2); }
  Partial partial(const QueryGroup& group, std::int64_t part) const {
    float* values = group.partials + to_size(part) * partial_floats(group);
    float* maximum = values + to_size(queries(group)) * width;
    return {values, maximum, maximum + queries(group)};
  }

  template <class F>
  void for_each_group(F&& f) const {
    for (std::int64_t b = 0; b < sequences.count(); ++b)
      for (std::int64_t begin = sequences[b].begin; begin < sequences[b].end; begin += tokens_per_group)
        for (std::int64_t kv = 0; kv < kv_heads; ++kv) f(group(b, kv, begin));
  }

 private:
  QueryGroup group(std::int64_t b, std::int64_t kv_head, std::int64_t first) const;
};

// Groups whose partial results are in memory at the same time.
struct Wave {
  std::span<QueryGroup> groups;
  std::int64_t items = 0;    // parts of all groups
  std::int64_t queries = 0;  // query vectors of all groups

  // The group that contains an item or a query, found by the member that numbers it.
  const QueryGroup& group_of(std::int64_t index, std::int64_t QueryGroup::*first) const {
    const auto after = std::partition_point(groups.begin(), groups.end(),
                                            [&](const QueryGroup& group) { return group.*first <= index; });
    return *(after - 1);
  }
};

// Memory shared by the whole call, from the context's scratch.
struct WorkMemory {
  WorkMemory(Context& context, const PackedAttention& call);
  float* signs;
  float* key_tokens;    // [T,KH,D] if the call passes such rows, then their norms
  float* value_tokens;  // the same
  std::span<QueryGroup> groups;
  std::span<float> partials;
};

// Takes groups from the front as long as their partial results fit, but at least one, and numbers their work.
Wave next_wave(const PackedAttention& call, std::span<QueryGroup> groups, std::span<float> partials);

// Runs the call, in waves. Each instruction set has an implementation.
void attend_packed(Context& context, PackedCall call, const ops::Sequences& sequences,
                   FunctionRef<std::int64_t(std::int64_t)> lengths);

}  // namespace sluice::backend::cpu::attention::packed
