// One tile of queries over one part of a cache, and merging parts. Included once per instruction set.
//
// Softmax is online over blocks of kBlockRows rows and exact over the rows that a query sees: a row outside
// its range is neither weighted nor multiplied, so a NaN there has no effect. Parts (kPartRows) and blocks
// are counted from row 0 of the cache, and parts are merged in ascending order: the bits of a query's output
// depend only on the query and the rows it sees.
#if defined(SLUICE_BACKEND_CPU_ATTEND_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_ATTEND_TILE_INL_H_
#undef SLUICE_BACKEND_CPU_ATTEND_TILE_INL_H_
#else
#define SLUICE_BACKEND_CPU_ATTEND_TILE_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>

#include <limits>

#include "backend/cpu/attention/attend.h"
#include "backend/cpu/attention/f32_products-inl.h"
#include "backend/cpu/simd/exponential-inl.h"
#include "base/integer_cast.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::attention::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;

constexpr std::int64_t kBlockRows = 128;
constexpr std::size_t kScoreStride = kBlockRows + kMaxQueries;

// Rows [begin, end).
struct Range {
  std::int64_t begin;
  std::int64_t end;
  bool empty() const { return begin >= end; }
};

HWY_INLINE Range overlap(const Range& a, const Range& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

// Cache rows of one KV head, of either type, contiguous or paged.
struct CacheRows {
  const void* data;
  ops::DType type;
  std::int64_t stride;
  std::size_t width;
  const std::int32_t* pages = nullptr;  // of the sequence
  std::int64_t page_count = 0;
  std::int64_t page_stride = 0;  // elements
  int page_shift = 0;            // 2^page_shift rows per page

  // Elements between `data` and a row.
  std::int64_t offset(std::int64_t row) const {
    if (pages == nullptr) return row * stride;
    const std::int64_t page = row >> page_shift;
    return pages[page] * page_stride + (row - (page << page_shift)) * stride;
  }
  // How many of the rows [row, end) are contiguous.
  std::int64_t run(std::int64_t row, std::int64_t end) const {
    if (pages == nullptr) return end - row;
    return std::min(end, ((row >> page_shift) + 1) << page_shift) - row;
  }
  // The contiguous rows from `first` on.
  template <class T>
  Rows<T> as(std::int64_t first) const {
    return {static_cast<const T*>(data) + offset(first), stride, width};
  }
  // The address of a row to prefetch, which need not exist.
  std::uintptr_t address_ahead(std::int64_t row) const {
    const bool exists = pages == nullptr || row >> page_shift < page_count;
    return reinterpret_cast<std::uintptr_t>(data) +
           static_cast<std::uintptr_t>(exists ? offset(row) : 0) * size_bytes(type);
  }
  // These rows for prefetching.
  Ahead ahead(std::int64_t first) const {
    return {address_ahead(first), stride * static_cast<std::int64_t>(size_bytes(type))};
  }
  // Calls f(Rows<T>) with the contiguous rows from `first` on.
  template <class F>
  HWY_INLINE void visit(std::int64_t first, F&& f) const {
    if (type == ops::DType::f32)
      f(as<float>(first));
    else
      f(as<ops::BFloat16>(first));
  }
};

// The state of one query's softmax over some rows: sums = sum of e^(score - largest) * value.
struct Partial {
  float largest = -std::numeric_limits<float>::infinity();
  float total = 0;  // 0: no row seen yet, otherwise at least 1
};

// The queries of a tile, in rows of `stride` floats in the order of pairs, and the rows they see.
struct QueryTile {
  std::size_t count;
  const float* queries;
  std::size_t stride;
  std::size_t piece_offset[kMaxPieces];
  const Range* visible;  // one per query
  float scale;
  std::size_t query_pieces;  // pieces per query for BF16 products
  std::size_t weight_pieces;
  int pieces;
  CacheRows keys[kMaxPieces];
  CacheRows values;
};

HWY_INLINE float exponential(float x) {
  const hn::CappedTag<float, 4> d;
  return hn::GetLane(hn::Exp(d, hn::Set(d, x)));
}

HWY_INLINE void scale_sums(float* sums, std::size_t count, float factor) {
  const FloatTag d;
  const auto f = hn::Set(d, factor);
  for (std::size_t i = 0; i < count; i += kLanes) hn::StoreU(hn::Mul(f, hn::LoadU(d, sums + i)), d, sums + i);
}

// Turns the scores of rows [seen) of a block into weights relative to the largest score so far, with `finish`
// applied to each vector; returns the factor that rescales the sums of earlier blocks.
HWY_INLINE float weigh_block(float* HWY_RESTRICT scores, const Range& seen, float scale, Partial& partial,
                             const auto& finish) {
  const FloatTag d;
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  const auto factor = hn::Set(d, scale);
  const std::int64_t lanes = kLanes;
  const std::int64_t begin = seen.begin / lanes * lanes;
  auto largest = lowest;
  for (std::int64_t j = begin; j < seen.end; j += lanes) {
    const auto inside = hn::AndNot(hn::FirstN(d, to_size(std::max<std::int64_t>(seen.begin - j, 0))),
                                   hn::FirstN(d, to_size(seen.end - j)));
    const auto score = hn::IfThenElse(inside, hn::Mul(factor, hn::LoadU(d, scores + j)), lowest);
    hn::StoreU(score, d, scores + j);
    largest = hn::Max(largest, score);
  }
  const float before = partial.largest;
  partial.largest = std::max(before, hn::GetLane(hn::MaxOfLanes(d, largest)));
  const auto reference = hn::Set(d, partial.largest);
  auto total = hn::Zero(d);
  for (std::int64_t j = begin; j < seen.end; j += lanes) {
    const auto score = hn::LoadU(d, scores + j);
    const auto below = hn::Sub(score, reference);
    // The exponential does not propagate NaN; adding x - x, which is 0 or NaN, does.
    const auto power = hn::Add(exponential_below_one(d, below), hn::Sub(below, below));
    const auto weight = finish(hn::IfThenZeroElse(hn::Eq(score, lowest), power));
    hn::StoreU(weight, d, scores + j);
    total = hn::Add(total, weight);
  }
  const float sum = hn::GetLane(hn::SumOfLanes(d, total));
  if (partial.total == 0 || partial.largest == before) {
    partial.total += sum;
    return 1;
  }
  const float shrink = exponential(before - partial.largest);
  partial.total = partial.total * shrink + sum;
  return shrink;
}

// The scores of rows [any) of a block for kQueries queries from `first` on. All pieces of keys are
// scored for one run before the next one, because scoring may write past the end of a run.
template <std::size_t kQueries>
HWY_INLINE void score_block(const QueryTile& tile, std::size_t first, const Range& block, const Range& any,
                            float* scores) {
  const QueryRows<const float> queries{tile.queries + first * tile.stride, tile.stride};
  for (std::int64_t j = any.begin; j < any.end;) {
    const std::int64_t row = block.begin + j;
    const std::int64_t count = tile.keys[0].run(row, block.begin + any.end);
    const Ahead ahead = tile.values.ahead(row);
    tile.keys[0].visit(row, [&](const auto& rows) HWY_ATTR {
      score_tile<false, kQueries>(queries, rows, ahead, 0, count, {scores + j, kScoreStride});
    });
    for (int piece = 1; piece < tile.pieces; ++piece)
      tile.keys[piece].visit(row, [&](const auto& rows) HWY_ATTR {
        score_tile<true, kQueries>({queries.data + tile.piece_offset[piece], tile.stride}, rows, ahead, 0,
                                   count, {scores + j, kScoreStride});
      });
    j += count;
  }
}

// sums += rows [part) of a block times the weights of some queries. Prefetches the keys of the next block.
HWY_INLINE void add_block(const QueryTile& tile, const Range& block, const Range& part,
                          const RowWeights& weights, const QueryRows<float>& sums) {
  for (std::int64_t j = part.begin; j < part.end;) {
    const std::int64_t count = tile.values.run(block.begin + j, block.begin + part.end);
    const Ahead ahead = tile.keys[0].ahead(block.end + j);
    tile.values.visit(block.begin + j, [&](const auto& rows) HWY_ATTR {
      add_weighted(weights.from(0, j), rows, ahead, 0, count, sums);
    });
    j += count;
  }
}

// kQueries queries from `first` over one block: rows [block.begin, block.end) of the cache.
template <std::size_t kQueries>
HWY_NOINLINE void attend_block(const QueryTile& tile, std::size_t first, const Range& block, float* scores,
                               Partial* partials, const QueryRows<float>& sums) {
  Range seen[kQueries];  // rows of the block
  Range any = {kBlockRows, 0};
  Range all = {0, kBlockRows};
  for (std::size_t q = 0; q < kQueries; ++q) {
    const Range rows = overlap(tile.visible[first + q], block);
    seen[q] = {rows.begin - block.begin, rows.end - block.begin};
    all = overlap(all, seen[q]);
    if (!seen[q].empty()) any = {std::min(any.begin, seen[q].begin), std::max(any.end, seen[q].end)};
  }
  if (any.empty()) return;
  score_block<kQueries>(tile, first, block, any, scores);
  for (std::size_t q = 0; q < kQueries; ++q) {
    if (seen[q].empty()) continue;
    const float shrink = weigh_block(scores + q * kScoreStride, seen[q], tile.scale, partials[first + q],
                                     [](auto weight) HWY_ATTR { return weight; });
    if (shrink != 1) scale_sums(sums.row(first + q), sums.stride, shrink);
  }
  const auto add = [&](std::size_t q, std::size_t count, const Range& part) HWY_ATTR {
    add_block(tile, block, part, {{scores + q * kScoreStride, kScoreStride}, count},
              {sums.row(first + q), sums.stride});
  };
  // Rows that only some queries see, then those that all see, then the rest: ascending for each query.
  if (all.empty()) {
    for (std::size_t q = 0; q < kQueries; ++q) add(q, 1, seen[q]);
    return;
  }
  for (std::size_t q = 0; q < kQueries; ++q) add(q, 1, {seen[q].begin, all.begin});
  add(0, kQueries, all);
  for (std::size_t q = 0; q < kQueries; ++q) add(q, 1, {all.end, seen[q].end});
}

// All queries of a tile over one part; partials and sums are overwritten, not added to.
HWY_INLINE void attend_part(const QueryTile& tile, const Range& part, float* scores, Partial* partials,
                            float* sums) {
  const QueryRows<float> rows{sums, padded(tile.values.width)};
  std::fill_n(partials, tile.count, Partial());
  std::fill_n(sums, tile.count * rows.stride, 0.0f);
  for (std::int64_t begin = part.begin; begin < part.end; begin += kBlockRows) {
    const Range block = {begin, std::min(begin + kBlockRows, part.end)};
    std::size_t q = 0;
    if constexpr (kMaxQueries >= 8)
      for (; q + 8 <= tile.count; q += 8) attend_block<8>(tile, q, block, scores, partials, rows);
    for (; q + 4 <= tile.count; q += 4) attend_block<4>(tile, q, block, scores, partials, rows);
    for (; q + 2 <= tile.count; q += 2) attend_block<2>(tile, q, block, scores, partials, rows);
    for (; q < tile.count; ++q) attend_block<1>(tile, q, block, scores, partials, rows);
  }
}

// Merges (next, next_sums), which are of later rows, into (to, sums).
HWY_INLINE void merge(Partial& to, float* HWY_RESTRICT sums, const Partial& next,
                      const float* HWY_RESTRICT next_sums, std::size_t count) {
  if (next.total == 0) return;
  if (to.total == 0) {
    to = next;
    std::copy_n(next_sums, count, sums);
    return;
  }
  const FloatTag d;
  const float largest = std::max(to.largest, next.largest);
  const float keep = exponential(to.largest - largest);
  const float take = exponential(next.largest - largest);
  to = {largest, to.total * keep + next.total * take};
  const auto k = hn::Set(d, keep);
  const auto t = hn::Set(d, take);
  for (std::size_t i = 0; i < count; i += kLanes)
    hn::StoreU(hn::MulAdd(t, hn::LoadU(d, next_sums + i), hn::Mul(k, hn::LoadU(d, sums + i))), d, sums + i);
}

}  // namespace sluice::backend::cpu::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
