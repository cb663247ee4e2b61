#include "backend/cpu/attention/packed/call.h"

#include <cmath>
#include <limits>

#include "backend/cpu/attention/packed/word_levels.h"
#include "base/integer_cast.h"

namespace sluice::backend::cpu::attention::packed {

namespace {

constexpr std::int64_t kGroupQueries = 64;  // query vectors, enough to make unpacking cheap
constexpr std::int64_t kTileFloats = 8192;  // in the first-level cache
constexpr std::int64_t kMinTileRows = 16;   // a whole vector of scores
constexpr std::int64_t kMaxTileRows = 64;
constexpr std::int64_t kUnitTileRows = bf16::kValueRows;
constexpr std::size_t kPartialFloats = std::size_t{8} << 20;  // of partial results in memory at once

// The error of integers is less than a tenth of the rounding error of a BF16 output.
CodeProducts products_of(const PackedCall& op, std::size_t width, const Context& context) {
  const bool integers = !context.exact() || op.out.dtype == ops::DType::bf16;
  const auto both = [&](const auto& know) { return know(op.keys.bits) && know(op.values.bits); };
  if (integers && both([&](std::int64_t bits) { return multiplies_digits(context.isa(), bits, width); }))
    return CodeProducts::digits;
  if (bf16::available(context.isa()) && both([&](std::int64_t bits) { return knows_codes(bits, width); }))
    return CodeProducts::numbers;
  // Levels of 8 bits are the least accurate ones as words.
  if (integers && both([&](std::int64_t bits) {
        return knows_words(context.isa(), bits, width) && (bits < 8 || op.out.dtype == ops::DType::bf16);
      }))
    return CodeProducts::words;
  return CodeProducts::vectors;
}

}  // namespace

PackedAttention::PackedAttention(const PackedCall& op, const ops::Sequences& sequences,
                                 FunctionRef<std::int64_t(std::int64_t)> lengths, const Context& context)
    : op(op),
      sequences(sequences),
      lengths(lengths),
      width(to_size(op.q.dim(2))),
      rope_width(op.rope_q.present() ? to_size(op.rope_q.dim(2)) : 0),
      kv_heads(op.keys.norms.dim(op.keys.norms.rank() - 2)),
      heads_per_kv(op.q.dim(1) / kv_heads),
      tokens_per_group(std::max<std::int64_t>(1, kGroupQueries / heads_per_kv)),
      products(products_of(op, width, context)),
      tile_rows(by_units() ? kUnitTileRows
                : products == CodeProducts::words
                    ? kMaxTileRows
                    : std::clamp(kTileFloats / op.q.dim(2), kMinTileRows, kMaxTileRows)),
      root(static_cast<float>(1 / std::sqrt(width))),
      score_factor(static_cast<float>(op.scale / std::sqrt(width))) {}

QueryGroup PackedAttention::group(std::int64_t b, std::int64_t kv_head, std::int64_t first) const {
  const ops::Sequence sequence = sequences[b];
  QueryGroup group{};
  group.sequence = b;
  group.kv_head = kv_head;
  group.first = first;
  group.tokens = std::min(tokens_per_group, sequence.end - first);
  group.first_end = lengths(b) - (sequence.end - first) + 1;
  group.first_own = op.keys.tokens.present() ? lengths(b) - sequence.tokens() : lengths(b);
  const std::int64_t last = queries(group) - 1;
  group.rows = {sight(group, 0, false).begin, sight(group, last, false).end};
  if (op.keys.tokens.present()) group.own = {sight(group, 0, true).begin, sight(group, last, true).end};
  return group;
}

PackedRows PackedAttention::rows(const PackedCache& cache, const QueryGroup& group) const {
  const ops::Sequence sequence = sequences[group.sequence];
  const std::int32_t* pages = sequences.pages(sequence);
  const auto memory = [&](const ops::ConstView& pool) {
    return (pages != nullptr ? pool[0] : sequences.part(pool, sequence))[group.kv_head];
  };
  const ops::ConstView codes = memory(cache.codes);
  const ops::ConstView norms = memory(cache.norms);
  PackedRows rows{static_cast<const std::uint8_t*>(codes.data),
                  codes.strides[0],
                  static_cast<const float*>(norms.data),
                  norms.dim(0),
                  ops::Sequences::value(op.ring_start, group.sequence),
                  nullptr,
                  nullptr,
                  kv_heads * static_cast<std::int64_t>(width),
                  kv_heads,
                  std::numeric_limits<std::int64_t>::max()};
  if (pages != nullptr) {
    rows.pages = pages;
    rows.page_count = sequences.page_count();
    rows.code_page_stride = cache.codes.strides[0];
    rows.norm_page_stride = cache.norms.strides[0];
  }
  if (cache.rotated_tokens == nullptr) return rows;
  rows.first_token = lengths(group.sequence) - sequence.tokens();
  rows.tokens = cache.rotated_tokens + sequence.begin * rows.token_floats +
                group.kv_head * static_cast<std::int64_t>(width);
  rows.token_norms = cache.token_norms + sequence.begin * kv_heads + group.kv_head;
  return rows;
}

WorkMemory::WorkMemory(Context& context, const PackedAttention& call) {
  std::size_t count = 0;
  std::size_t largest = 0;
  std::size_t all = 0;
  call.for_each_group([&](const QueryGroup& group) {
    const std::size_t floats = call.partial_floats(group) * to_size(group.parts());
    ++count;
    all += floats;
    largest = std::max(largest, floats);
  });
  const std::size_t floats = std::max(largest, std::min(all, kPartialFloats));
  const ops::ConstView& own = call.op.keys.tokens;
  const std::size_t tokens = own.present() ? to_size(own.elements() + own.dim(0) * own.dim(1)) : 0;
  const std::size_t bytes = count * sizeof(QueryGroup) + (call.width + 2 * tokens + floats) * sizeof(float);
  auto* first = reinterpret_cast<QueryGroup*>(context.shared_scratch(bytes));
  groups = {first, count};
  signs = reinterpret_cast<float*>(first + count);
  key_tokens = signs + call.width;
  value_tokens = key_tokens + tokens;
  partials = {value_tokens + tokens, floats};
}

Wave next_wave(const PackedAttention& call, std::span<QueryGroup> groups, std::span<float> partials) {
  Wave wave;
  std::size_t used = 0;
  std::size_t count = 0;
  while (count < groups.size()) {
    QueryGroup& group = groups[count];
    const std::size_t floats = call.partial_floats(group) * to_size(group.parts());
    if (used + floats > partials.size()) break;
    group.partials = partials.data() + used;
    group.first_item = wave.items;
    group.first_query = wave.queries;
    wave.items += group.parts();
    wave.queries += call.queries(group);
    used += floats;
    ++count;
  }
  wave.groups = groups.first(count);
  return wave;
}

}  // namespace sluice::backend::cpu::attention::packed
