// Attention computed from packed caches: out = softmax(scale * q kT) v.
//
// Keys and values stay in the rotated basis: q is rotated once, and the sum of values is rotated back once.
// Work is divided by (sequence, KV head, group of queries, part of kPartRows logical rows). A part is
// processed in tiles that fit the first-level cache: a tile's codes are converted to levels once for all
// queries of the group and all query heads of the KV head. Levels are not multiplied by norms: a key's norm
// scales its score, a value's norm its weight, and both are masked, so a row that a query does not see cannot
// affect it, not even with NaN. Each part stores its maximum, its sum of weights and its weighted values;
// parts are merged in ascending order. Parts and tiles are counted from logical row 0 and a row that is not
// visible adds exactly 0, so one query's bits do not depend on the others. Rows of the call's own tokens that
// are not read from codes are rotated once, replace levels with a norm of 1, and form a part of their own
// after the others; the products of rotary keys are added to the scores.
//
// With AMX, 4-bit codes are not converted to F32 levels but multiplied as bytes (packed/amx_int8_q4.h), or as
// BF16 numbers if the backend is exact and the output F32 (packed/amx_bf16_q4.h). On other x86 processors
// levels are 16-bit words, with the same exception (packed/word_products-inl.h).
//
// Bytes: every visible packed row once per group. Arithmetic and softmax in F32; 4*D operations per query,
// head and row. The error compared with double on equal codes is about 1e-6, or 1e-4 with bytes or words.
#define HWY_WANT_AVX3_DL  // for VNNI
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS 0xFFF007FLL
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/attention/packed/attend.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/cpu/attention/f32_products-inl.h"
#include "backend/cpu/attention/packed/call.h"
#include "backend/cpu/attention/packed/coded_tile-inl.h"
#include "backend/cpu/attention/packed/levels-inl.h"
#include "backend/cpu/attention/softmax_tile-inl.h"
#include "backend/cpu/cache/hadamard-inl.h"
#include "backend/cpu/cache/signs.h"
#include "backend/cpu/runtime/context.h"
#include "backend/cpu/runtime/row_walk.h"
#include "base/integer_cast.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::attention::packed::HWY_NAMESPACE {

using namespace attention::HWY_NAMESPACE;
using namespace cache::HWY_NAMESPACE;

// Calls f with a compile-time number of queries, the largest that still fits, until all are done.
template <class F>
HWY_INLINE void for_each_query_tile(std::size_t queries, F&& f) {
  std::size_t q = 0;
  for (; q + kMaxQueries <= queries; q += kMaxQueries)
    f(q, std::integral_constant<std::size_t, kMaxQueries>());
  for (; q + 2 <= queries; q += 2) f(q, std::integral_constant<std::size_t, 2>());
  for (; q < queries; ++q) f(q, std::integral_constant<std::size_t, 1>());
}

// Writes the levels of some rows into the corresponding rows of the tile.
HWY_INLINE void read_levels(const PackedRows& rows, std::int64_t bits, std::size_t width, const TileRows& of,
                            float* tile) {
  if (of.own) {
    for (std::int64_t j = of.begin; j < of.end; ++j)
      std::copy_n(rows.tokens + (of.first + j - rows.first_token) * rows.token_floats, width,
                  tile + to_size(j) * width);
    return;
  }
  with_level_reader(bits, [&](const auto& levels) HWY_ATTR {
    rows.for_each(of.first, of.begin, of.end, [&](std::int64_t j, const std::uint8_t* codes, float) HWY_ATTR {
      levels.read(codes, width, tile + to_size(j) * width);
    });
  });
}

HWY_INLINE void read_factors(const PackedRows& rows, float factor, const TileRows& of, float* to) {
  if (!of.own)
    return rows.for_each(of.first, of.begin, of.end,
                         [&](std::int64_t j, const std::uint8_t*, float norm) { to[j] = norm * factor; });
  for (std::int64_t j = of.begin; j < of.end; ++j)
    to[j] = rows.token_norms[(of.first + j - rows.first_token) * rows.kv_heads] * factor;
}

HWY_INLINE void load_queries(const PackedAttention& call, const QueryGroup& group,
                             const PartScratch& scratch) {
  const PackedCall& op = call.op;
  float* to = scratch.queries;
  for (std::int64_t r = 0; r < call.queries(group); ++r, to += call.width) {
    load_row(row_at(op.q, call.query_row(group, r)), op.q.dtype, call.width, to);
    if (!op.rotated) rotate(to, call.width, call.root, call.signs);
  }
  if (call.by_units()) {
    const std::size_t count = call.queries(group);
    for (std::size_t q = 0; q < count; ++q)
      to_nibble_order(scratch.queries + q * call.width, call.width, scratch.tile + q * call.width);
    if (call.products == CodeProducts::digits)
      pack_digits(scratch.tile, call.width, count, call.width, scratch.digits);
    else
      bf16::pack_queries(scratch.tile, call.width, {count}, call.width, scratch.units.pieces,
                         scratch.units.queries);
  }
#if HWY_ARCH_X86
  if (call.products == CodeProducts::words)
    pack_words(scratch.queries, to_size(call.queries(group)), op.keys.bits, scratch.words);
#endif
  if (call.rope_width == 0) return;
  const std::size_t floats = padded(call.rope_width);
  to = scratch.rope_queries;
  for (std::int64_t r = 0; r < call.queries(group); ++r, to += floats) {
    load_row(row_at(op.rope_q, call.query_row(group, r)), op.rope_q.dtype, call.rope_width, to);
    std::fill(to + call.rope_width, to + floats, 0.0F);
    scale_signed(to, floats, static_cast<float>(op.scale), nullptr);
    if (op.rope_cache.dtype == ops::DType::bf16) to_pairs(to, call.rope_width);
  }
}

// Scores of latents times their norms, plus the scores of the same rows' rotary keys.
template <class T>
HWY_INLINE void add_rope_scores(const PackedAttention& call, const QueryGroup& group, const TileRows& of,
                                const PartScratch& scratch) {
  const FloatTag d;
  const auto cache = call.sequences.cache(call.op.rope_cache, call.sequences[group.sequence]);
  const std::size_t queries = call.queries(group);
  const std::size_t stride = scratch.score_stride;
  for (std::size_t q = 0; q < queries; ++q)
    for (std::int64_t j = 0; j < call.tile_rows; j += static_cast<std::int64_t>(hn::Lanes(d))) {
      float* scores = scratch.scores + q * stride + j;
      hn::StoreU(hn::Mul(hn::LoadU(d, scores), hn::LoadU(d, scratch.key_factors + j)), d, scores);
    }
  // All runs but the last are multiples of eight rows, so none overwrites scores of the next.
  for (std::int64_t j = of.begin; j < of.end;) {
    const std::int64_t lying = cache.run(of.first + j, of.first + of.end);
    const ops::ConstView block = cache.block(of.first + j);
    const Rows<T> rows{static_cast<const T*>(block.data) + cache.index(of.first + j) * block.strides[0],
                       block.strides[0], call.rope_width};
    for_each_query_tile(queries, [&](std::size_t q, auto count) HWY_ATTR {
      const std::size_t floats = padded(call.rope_width);
      score_tile<true, decltype(count)::value>({scratch.rope_queries + q * floats, floats}, rows,
                                               NothingAhead(), 0, lying,
                                               {scratch.scores + q * stride + j, stride});
    });
    j += lying;
  }
  std::fill_n(scratch.key_factors, call.tile_rows, 1.0F);
}

// Processes some rows for all queries of a group.
HWY_INLINE void attend_tile(const PackedAttention& call, const QueryGroup& group, const TileRows& of,
                            const Partial& to, const PartScratch& scratch) {
  const std::size_t queries = call.queries(group);
  const std::size_t width = call.width;
  const std::size_t stride = scratch.score_stride;
  const Rows<float> tile{scratch.tile, static_cast<std::int64_t>(width), width};
  const PackedRows keys = call.rows(call.op.keys, group);
  const PackedRows values = call.rows(call.op.values, group);
  const bool from_codes = call.products != CodeProducts::vectors && !of.own;
  const float level_scale = from_codes && call.products == CodeProducts::numbers ? kLevelScale : 1;
  AttendAhead ahead = ahead_of(call, keys, values, of.first + call.tile_rows);
  read_factors(keys, call.score_factor / level_scale, of, scratch.key_factors);
  read_factors(values, call.root / level_scale, of, scratch.value_factors);
  if (from_codes) {
    score_codes(call, group, of, scratch, ahead);
  } else {
    read_levels(keys, call.op.keys.bits, width, of, scratch.tile);
    for_each_query_tile(queries, [&](std::size_t q, auto count) HWY_ATTR {
      score_tile<false, decltype(count)::value>({scratch.queries + q * width, width}, tile, NothingAhead(),
                                                of.begin, of.end, {scratch.scores + q * stride, stride});
    });
  }
  if (call.rope_width != 0) {
    if (call.op.rope_cache.dtype == ops::DType::f32)
      add_rope_scores<float>(call, group, of, scratch);
    else
      add_rope_scores<ops::BFloat16>(call, group, of, scratch);
  }
  for (std::size_t q = 0; q < queries; ++q) {
    // A tile of the call's own rows may be shorter than the room for scores; what follows it is not its own.
    const RowRange sight = call.sight(group, static_cast<std::int64_t>(q), of.own);
    const float rescale =
        softmax_tile(scratch.scores + q * stride, {scratch.key_factors, scratch.value_factors},
                     std::min(sight.begin - of.first, of.end), std::min(sight.end - of.first, of.end),
                     call.tile_rows, {to.maximum[q], to.total[q]});
    if (rescale == 1) continue;
    scale_signed(to.values + q * width, width, rescale, nullptr);
    if (call.products == CodeProducts::digits)
      scale_signed(scratch.digits.sums + q * width, width, rescale, nullptr);
    if (call.products != CodeProducts::numbers) continue;
    scale_signed(scratch.units.sums + q * width, width, rescale, nullptr);
    scale_signed(scratch.units.sums + (queries + q) * width, width, rescale, nullptr);
  }
  if (from_codes) return add_codes(call, group, of, scratch, ahead, to);
  if (!call.op.shared_rows()) read_levels(values, call.op.values.bits, width, of, scratch.tile);
  add_weighted({{scratch.scores, stride}, queries}, tile, NothingAhead(), of.begin, of.end,
               {to.values, width});
}

// Processes the rows of a part in tiles, which are counted from row 0.
HWY_INLINE void attend_rows(const PackedAttention& call, const QueryGroup& group, const RowRange& rows,
                            bool own, const Partial& to, const PartScratch& scratch) {
  const std::int64_t step = own ? std::min(call.tile_rows, ops::kFreshBlock) : call.tile_rows;
  for (std::int64_t first = rows.begin / step * step; first < rows.end; first += step)
    attend_tile(call, group,
                {first, std::max<std::int64_t>(rows.begin - first, 0), std::min(rows.end - first, step), own},
                to, scratch);
}

// Processes one part of the rows for one group of queries, which are loaded.
HWY_INLINE void attend_part(const PackedAttention& call, const QueryGroup& group, std::int64_t part,
                            const Partial& to, const PartScratch& scratch) {
  const std::size_t queries = call.queries(group);
  std::fill_n(to.values, queries * call.width, 0.0F);
  if (call.products == CodeProducts::digits) std::fill_n(scratch.digits.sums, queries * call.width, 0.0F);
  if (call.products == CodeProducts::numbers)
    std::fill_n(scratch.units.sums, 16 * bf16::whole_tiles(2 * queries) * call.width, 0.0F);
  std::fill_n(to.total, queries, 0.0F);
  std::fill_n(to.maximum, queries, -std::numeric_limits<float>::infinity());
  if (part == group.coded_parts()) return attend_rows(call, group, group.own, true, to, scratch);
  const std::int64_t first = (group.first_part() + part) * kPartRows;
  attend_rows(call, group, {std::max(first, group.rows.begin), std::min(first + kPartRows, group.rows.end)},
              false, to, scratch);
  if (call.products == CodeProducts::digits) add_digit_sums(scratch.digits, queries, call.width, to.values);
  if (call.products == CodeProducts::numbers)
    add_coded_sums(scratch.units.sums, queries, call.width, to.values);
}

// sum = sum * a + part * b.
HWY_INLINE void blend(float* HWY_RESTRICT sum, float a, const float* HWY_RESTRICT part, float b,
                      std::size_t width) {
  const FloatTag d;
  for (std::size_t i = 0; i < width; i += hn::Lanes(d)) {
    const auto scaled = hn::Mul(hn::LoadU(d, part + i), hn::Set(d, b));
    hn::StoreU(hn::MulAdd(hn::LoadU(d, sum + i), hn::Set(d, a), scaled), d, sum + i);
  }
}

// Reorders the sum of the parts from codes to the order of the coordinates; a spare row of memory follows it.
HWY_INLINE void order_coded([[maybe_unused]] const PackedAttention& call, [[maybe_unused]] float* sum) {
#if HWY_ARCH_X86
  if (call.products == CodeProducts::words)
    order_sums(call.op.values.bits, call.width, sum + call.width, sum);
#endif
}

// Merges the parts of one query row, in ascending order, into its row of the output.
HWY_INLINE void merge_parts(const PackedAttention& call, const QueryGroup& group, std::int64_t row,
                            float* sum) {
  const std::size_t width = call.width;
  float maximum = -std::numeric_limits<float>::infinity();
  float total = 0;
  std::fill_n(sum, width, 0.0F);
  for (std::int64_t p = 0; p < group.parts(); ++p) {
    if (p == group.coded_parts()) order_coded(call, sum);
    const Partial part = call.partial(group, p);
    if (part.total[row] == 0) continue;  // no row of the part is visible
    const float larger = std::max(maximum, part.maximum[row]);
    const float old_weight = std::exp(maximum - larger);
    const float new_weight = std::exp(part.maximum[row] - larger);
    blend(sum, old_weight, part.values + to_size(row) * width, new_weight, width);
    total = total * old_weight + part.total[row] * new_weight;
    maximum = larger;
  }
  if (group.parts() == group.coded_parts()) order_coded(call, sum);
  if (call.op.rotated)
    scale_signed(sum, width, 1 / total, nullptr);
  else
    rotate_back(sum, width, call.root / total, call.signs);
  store_row(sum, width, row_at(call.op.out, call.query_row(group, row)), call.op.out.dtype);
}

// Converts a token's vector to the form of levels; returns its norm. NaN is only put into the norm, because
// levels are multiplied by a weight of 0 for queries that do not see them.
HWY_INLINE float rotate_token(const PackedAttention& call, const ops::ConstView& tokens, std::int64_t i,
                              float* row) {
  load_row(row_at(tokens, i), tokens.dtype, call.width, row);
  if (call.op.rotated)
    scale_signed(row, call.width, 1 / call.root, nullptr);
  else
    rotate(row, call.width, 1, call.signs);
  const FloatTag d;
  auto zero = hn::Zero(d);  // NaN if a coordinate is not finite
  for (std::size_t c = 0; c < call.width; c += hn::Lanes(d)) {
    const auto x = hn::LoadU(d, row + c);
    zero = hn::Add(zero, hn::Sub(x, x));
  }
  const float norm = 1 + hn::GetLane(hn::SumOfLanes(d, zero));
  if (norm != 1) std::fill_n(row, call.width, 0.0F);
  return norm;
}

// Rotates into `to` [T,KH,D], followed by the norms.
void rotate_tokens(Context& context, const PackedAttention& call, const ops::ConstView& tokens, float* to) {
  float* norms = to + tokens.elements();
  context.pool().parallel_for(0, tokens.dim(0) * tokens.dim(1), 16,
                              [&](std::int64_t begin, std::int64_t end, int) HWY_ATTR {
                                for (std::int64_t i = begin; i < end; ++i)
                                  norms[i] = rotate_token(call, tokens, i, to + to_size(i) * call.width);
                              });
}

void attend_wave(Context& context, const PackedAttention& call, const Wave& wave) {
  // Enough tasks that every worker gets several, but few enough that loaded queries serve more than one part.
  const std::int64_t items = std::clamp<std::int64_t>(wave.items / (8 * context.pool().size()), 1, 8);
  context.pool().parallel_for_dynamic(
      0, wave.items, items, [&](std::int64_t begin, std::int64_t end, int worker) HWY_ATTR {
        const PartScratch scratch(call, context, worker);
        const bf16::Session session(call.by_units());
        const QueryGroup* loaded = nullptr;
        for (std::int64_t item = begin; item < end; ++item) {
          const QueryGroup& group = wave.group_of(item, &QueryGroup::first_item);
          if (loaded != &group) load_queries(call, group, scratch);
          loaded = &group;
          const std::int64_t part = item - group.first_item;
          attend_part(call, group, part, call.partial(group, part), scratch);
        }
      });
  context.pool().parallel_for(
      0, wave.queries, 1, [&](std::int64_t begin, std::int64_t end, int worker) HWY_ATTR {
        auto* sum = reinterpret_cast<float*>(context.worker_scratch(worker, 2 * call.width * sizeof(float)));
        for (std::int64_t query = begin; query < end; ++query) {
          const QueryGroup& group = wave.group_of(query, &QueryGroup::first_query);
          merge_parts(call, group, query - group.first_query, sum);
        }
      });
}

}  // namespace sluice::backend::cpu::attention::packed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu::attention::packed {

HWY_EXPORT(attend_wave);
HWY_EXPORT(rotate_tokens);

void attend_packed(Context& context, PackedCall op, const ops::Sequences& sequences,
                   FunctionRef<std::int64_t(std::int64_t)> lengths) {
  PackedAttention call(op, sequences, lengths, context);
  const WorkMemory memory(context, call);
  call.signs = cache::read_signs(op.signs, call.width, memory.signs);
  const auto rotate_own = [&](PackedCache& cache, float* to) {
    SLUICE_DISPATCH(context, rotate_tokens)(context, call, cache.tokens, to);
    cache.rotated_tokens = to;
    cache.token_norms = to + cache.tokens.elements();
  };
  if (op.keys.tokens.present()) {
    rotate_own(op.keys, memory.key_tokens);
    if (op.shared_rows())
      op.values = op.keys;
    else
      rotate_own(op.values, memory.value_tokens);
  }
  std::size_t count = 0;
  call.for_each_group([&](const QueryGroup& group) { memory.groups[count++] = group; });
  for (std::span<QueryGroup> rest = memory.groups; !rest.empty();) {
    const Wave wave = next_wave(call, rest, memory.partials);
    SLUICE_DISPATCH(context, attend_wave)(context, call, wave);
    rest = rest.subspan(wave.groups.size());
  }
}

}  // namespace sluice::backend::cpu::attention::packed
#endif
