// Attention from packed caches, common to turboquant_attention and mla_turboquant_attention: the call, how it
// is cut into groups of queries and parts of rows, and where each part leaves its result.
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

// Codes and norms of keys or values, and the rows of the call's tokens where these are not read from codes.
struct PackedCache {
  ops::ConstView codes;   // [KH,S,bytes] or, pooled, [P,KH,S,bytes]
  ops::ConstView norms;   // the same without bytes
  ops::ConstView tokens;  // [T,KH,D], or absent
  std::int64_t bits;
  const float* rotated_tokens = nullptr;  // [T,KH,D], times sqrt(D), zeros in place of rows with a NaN
  const float* token_norms = nullptr;     // [T,KH], 1 or NaN
};

struct PackedCall {
  ops::ConstView q;  // [T,H,D]
  ops::View out;     // [T,H,D]
  PackedCache keys;
  PackedCache values;         // the keys again where one row serves as both
  ops::ConstView rope_q;      // [T,H,R], or absent: what adds to the scores
  ops::ConstView rope_cache;  // [S,R] or, pooled, [P,S,R]
  ops::ConstView signs;
  ops::SequenceValue ring_start;
  std::int64_t window = 0;
  double scale = 1;
  bool rotated = false;
  bool shared_rows() const { return keys.codes.data == values.codes.data; }
};

// Logical rows of one softmax; fixed, so that results do not depend on the call.
inline constexpr std::int64_t kPartRows = 512;

struct RowRange {
  std::int64_t begin;
  std::int64_t end;
};

// Logical rows that lie one behind the other.
struct PackedRun {
  const std::uint8_t* codes;
  const float* norms;
  std::int64_t rows;
};

// One side of the cache for one KV head of one sequence.
struct PackedRows {
  const std::uint8_t* codes;
  std::int64_t stride;  // bytes from slot to slot
  const float* norms;
  std::int64_t slots;  // of the ring, or of a page
  std::int64_t ring_start;
  const float* tokens;        // of logical rows from first_token on, in place of levels
  const float* token_norms;   // theirs
  std::int64_t token_floats;  // from one to the next
  std::int64_t kv_heads;
  std::int64_t first_token;

  const std::int32_t* pages = nullptr;  // null: a ring
  std::int64_t page_count = 0;
  std::int64_t code_page_stride = 0;
  std::int64_t norm_page_stride = 0;

  // The rows [row, end) as far as they lie one behind the other.
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
  // f(j, codes, norm) for the rows first + [begin, end).
  template <class F>
  void for_each(std::int64_t first, std::int64_t begin, std::int64_t end, F&& f) const {
    for (std::int64_t j = begin; j < end;) {
      const PackedRun lying = run(first + j, first + end);
      for (std::int64_t i = 0; i < lying.rows; ++i, ++j) f(j, lying.codes + i * stride, lying.norms[i]);
    }
  }
  // Codes that are fetched ahead, which need not exist.
  const std::uint8_t* codes_ahead(std::int64_t row) const {
    return pages != nullptr && row / slots >= page_count ? codes : run(row, row + 1).codes;
  }
};

// Neighbouring tokens of a sequence with all query heads of one KV head: the query vectors that share one
// reading of the rows.
struct QueryGroup {
  std::int64_t sequence;
  std::int64_t kv_head;
  std::int64_t first;  // token in the call
  std::int64_t tokens;
  std::int64_t first_end;        // the first token sees rows up to here
  std::int64_t first_own;        // row that the call brings as it came; none: behind all rows
  RowRange rows;                 // seen from codes by any of the tokens
  RowRange own;                  // seen as they came
  std::int64_t first_item = 0;   // of its parts among those of a wave
  std::int64_t first_query = 0;  // of its query vectors among those of a wave
  float* partials = nullptr;

  std::int64_t first_part() const { return rows.begin / kPartRows; }
  std::int64_t coded_parts() const {
    return rows.begin < rows.end ? (rows.end + kPartRows - 1) / kPartRows - first_part() : 0;
  }
  // The rows as they came are a part behind those of codes.
  std::int64_t parts() const { return coded_parts() + (own.begin < own.end ? 1 : 0); }
};

// What a part leaves for each query vector of a group.
struct Partial {
  float* values;   // [queries,D], weighted by exp(score - maximum)
  float* maximum;  // [queries]
  float* total;    // [queries], the sum of the weights
};

// Who multiplies codes: vectors their F32 levels or words of integers, matrix units two BF16 numbers or two
// bytes a level.
enum class CodeProducts { vectors, words, numbers, digits };

struct PackedAttention {
  // `lengths(b)` is the number of rows of sequence b, its tokens' own included.
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
  // The logical rows that query vector r of a group sees, from codes or as they came.
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

  // The group that holds an item or a query, by the member that numbers it.
  const QueryGroup& group_of(std::int64_t index, std::int64_t QueryGroup::*first) const {
    const auto after = std::partition_point(groups.begin(), groups.end(),
                                            [&](const QueryGroup& group) { return group.*first <= index; });
    return *(after - 1);
  }
};

// What the whole call shares, carved from the context's memory.
struct WorkMemory {
  WorkMemory(Context& context, const PackedAttention& call);
  float* signs;
  float* key_tokens;    // [T,KH,D] where the call has such, then their norms
  float* value_tokens;  // the same
  std::span<QueryGroup> groups;
  std::span<float> partials;
};

// Takes groups from the front while their partial results fit, at least one, and numbers their work.
Wave next_wave(const PackedAttention& call, std::span<QueryGroup> groups, std::span<float> partials);

// Runs the call, in waves. One file an instruction set implements it.
void attend_packed(Context& context, PackedCall call, const ops::Sequences& sequences,
                   FunctionRef<std::int64_t(std::int64_t)> lengths);

}  // namespace sluice::backend::cpu::attention::packed
