// The two products of attention with register tiles: scores of queries with cache rows, and weighted sums of
// cache rows. Included once per instruction set.
//
// Cache rows are read two vectors at a time (a "pair"). For BF16 rows the pair is the even and the odd
// elements, which takes one shift and one mask instead of two widening moves; queries and sums have the same
// order, so lanes are never moved. In any tile, a score is one chain of multiply-adds over the pairs followed
// by the same tree over the lanes, and a sum is one chain over the rows in ascending order: tiling never
// changes a bit.
#if defined(SLUICE_BACKEND_CPU_ATTEND_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_ATTEND_ROWS_INL_H_
#undef SLUICE_BACKEND_CPU_ATTEND_ROWS_INL_H_
#else
#define SLUICE_BACKEND_CPU_ATTEND_ROWS_INL_H_
#endif

#include <algorithm>

#include "backend/cpu/runtime/fetch.h"
#include "backend/cpu/simd/rows-inl.h"
#include "base/integer_cast.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::attention::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;

constexpr std::size_t kLanes = hn::MaxLanes(FloatTag());
constexpr std::size_t kPair = 2 * kLanes;  // elements per step
constexpr std::size_t kMaxQueries = 8;     // queries that share one pass over rows
constexpr bool kManyRegisters = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64;  // 32 registers instead of 16

// Rows that share one load of the queries: as many as leave registers for their sums and pairs.
constexpr std::size_t rows_at_once(std::size_t queries) {
  if (kManyRegisters) return queries == 8 ? 2 : queries == 1 ? 8 : 4;
  return queries == 8 ? 1 : queries == 1 ? 4 : 2;
}

constexpr std::size_t padded(std::size_t width) {
  return (width + kPair - 1) / kPair * kPair;
}

struct Pair {
  FloatVec first;
  FloatVec second;
  // Explicit, because implicit constructors would not be compiled for this instruction set.
  HWY_INLINE Pair() {}
  HWY_INLINE Pair(FloatVec first, FloatVec second) : first(first), second(second) {}
};

HWY_INLINE Pair load_pair(const float* from) {
  const FloatTag d;
  return {hn::LoadU(d, from), hn::LoadU(d, from + kLanes)};
}

HWY_INLINE Pair load_pair(const ops::BFloat16* from) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  const hn::Repartition<std::uint16_t, FloatTag> du16;
  const auto both = hn::BitCast(du, hn::LoadU(du16, reinterpret_cast<const std::uint16_t*>(from)));
  return {hn::BitCast(d, hn::ShiftLeft<16>(both)), hn::BitCast(d, hn::And(both, hn::Set(du, 0xffff0000u)))};
}

// The last, incomplete pair of a row; nothing after the row is read.
template <class T>
HWY_INLINE Pair load_pair(const T* from, std::size_t count) {
  T copy[kPair] = {};
  std::memcpy(copy, from, count * sizeof(T));
  return load_pair(copy);
}

// Converts a padded row of floats to the order of BF16 pairs, and back.
HWY_INLINE void to_pairs(float* row, std::size_t width) {
  const FloatTag d;
  for (std::size_t i = 0; i < width; i += kPair) {
    FloatVec even;
    FloatVec odd;
    hn::LoadInterleaved2(d, row + i, even, odd);
    hn::StoreU(even, d, row + i);
    hn::StoreU(odd, d, row + i + kLanes);
  }
}
HWY_INLINE void from_pairs(float* row, std::size_t width) {
  const FloatTag d;
  for (std::size_t i = 0; i < width; i += kPair) {
    const Pair pair = load_pair(row + i);
    hn::StoreInterleaved2(pair.first, pair.second, d, row + i);
  }
}

using Four = hn::Full128<float>;

HWY_INLINE hn::Vec<Four> fold_blocks(hn::Vec<Four> v) {
  return v;
}
template <class V>
HWY_INLINE hn::Vec<Four> fold_blocks(V v) {
  const hn::DFromV<V> d;
  const hn::Half<decltype(d)> half;
  return fold_blocks(hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
}

// The sums of the lanes of four vectors, in order.
HWY_INLINE hn::Vec<Four> sum_lanes(FloatVec a, FloatVec b, FloatVec c, FloatVec e) {
  const FloatTag d;
  const auto ac = hn::Add(hn::InterleaveLower(d, a, c), hn::InterleaveUpper(d, a, c));
  const auto be = hn::Add(hn::InterleaveLower(d, b, e), hn::InterleaveUpper(d, b, e));
  return fold_blocks(hn::Add(hn::InterleaveLower(d, ac, be), hn::InterleaveUpper(d, ac, be)));
}

// Cache rows of one KV head.
template <class T>
struct Rows {
  const T* data;
  std::int64_t stride;  // elements
  std::size_t width;
  const T* row(std::int64_t j) const { return data + j * stride; }
};

// Rows to prefetch. They are prefetched at the pace of the current ones, row by row and column by column, so
// that memory is never idle; addresses past the cache are harmless.
struct Ahead {
  std::uintptr_t data;
  std::int64_t stride;  // bytes
  template <class T>
  HWY_INLINE void fetch(std::int64_t row, std::size_t column) const {
    const std::uintptr_t at = data + static_cast<std::uintptr_t>(row * stride) + column * sizeof(T);
    cpu::fetch(reinterpret_cast<const std::byte*>(at), kPair * sizeof(T));
  }
};

// For rows that are already in cache.
struct NothingAhead {
  template <class T>
  HWY_INLINE void fetch(std::int64_t, std::size_t) const {}
};

// One row of floats per query: coordinates, scores, weights or sums.
template <class F>
struct QueryRows {
  F* data;
  std::size_t stride;
  F* row(std::size_t query) const { return data + query * stride; }
};

// scores[q][j] (+)= queries[q] . rows[j] for j in [begin, end). May write up to kMaxQueries - 1 scores after
// `end`.
template <bool kAdd, std::size_t kQueries, class T>
HWY_INLINE void score_tile(const QueryRows<const float>& queries, const Rows<T>& rows, const auto& ahead,
                           std::int64_t begin, std::int64_t end, const QueryRows<float>& scores) {
  constexpr std::size_t kRows = rows_at_once(kQueries);
  const FloatTag d;
  const std::size_t whole = rows.width / kPair * kPair;
  for (std::int64_t j = begin; j < end; j += kRows) {
    const T* row[kRows];
    for (std::size_t r = 0; r < kRows; ++r)
      row[r] = rows.row(std::min<std::int64_t>(j + static_cast<std::int64_t>(r), end - 1));
    FloatVec sum[kQueries * kRows];
    for (auto& s : sum) s = hn::Zero(d);
    const auto step = [&](std::size_t i, const Pair* pair) HWY_ATTR {
      for (std::size_t q = 0; q < kQueries; ++q) {
        const float* query = queries.row(q) + i;
        const auto first = hn::LoadU(d, query);
        for (std::size_t r = 0; r < kRows; ++r)
          sum[q * kRows + r] = hn::MulAdd(first, pair[r].first, sum[q * kRows + r]);
        const auto second = hn::LoadU(d, query + kLanes);
        for (std::size_t r = 0; r < kRows; ++r)
          sum[q * kRows + r] = hn::MulAdd(second, pair[r].second, sum[q * kRows + r]);
      }
    };
    Pair pair[kRows];
    for (std::size_t i = 0; i < whole; i += kPair) {
      for (std::size_t r = 0; r < kRows; ++r) {
        pair[r] = load_pair(row[r] + i);
        ahead.template fetch<T>(j + static_cast<std::int64_t>(r), i);
      }
      step(i, pair);
    }
    if (whole < rows.width) {
      for (std::size_t r = 0; r < kRows; ++r) pair[r] = load_pair(row[r] + whole, rows.width - whole);
      step(whole, pair);
    }
    alignas(16) float dots[kQueries * kRows];
    for (std::size_t i = 0; i < kQueries * kRows; i += 4)
      hn::Store(sum_lanes(sum[i], sum[i + 1], sum[i + 2], sum[i + 3]), Four(), dots + i);
    for (std::size_t q = 0; q < kQueries; ++q)
      for (std::size_t r = 0; r < kRows; ++r) {
        float& score = scores.row(q)[to_size(j) + r];
        score = kAdd ? score + dots[q * kRows + r] : dots[q * kRows + r];
      }
  }
}

// Rows that are added together: their pairs stay in registers during one pass over the sums of all queries.
constexpr std::size_t kValueRows = kManyRegisters ? 8 : 4;

// The weights of cache rows for some queries.
struct RowWeights {
  QueryRows<const float> rows;
  std::size_t queries;
  // Those from query `query` and row `row` on.
  RowWeights from(std::size_t query, std::int64_t row) const {
    return {{rows.row(query) + row, rows.stride}, queries};
  }
};

// sums[q] += sum over r of weights[q][r] * pair[r], for one pair of columns.
template <std::size_t kRows>
HWY_INLINE void add_pairs(const RowWeights& given, const Pair* pair, const QueryRows<float>& to) {
  const FloatTag d;
  const float* HWY_RESTRICT weights = given.rows.data;
  float* HWY_RESTRICT sums = to.data;
  for (std::size_t q = 0; q < given.queries; ++q, weights += given.rows.stride, sums += to.stride) {
    Pair sum = load_pair(sums);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRows; ++r) {
      const auto weight = hn::Set(d, weights[r]);
      sum.first = hn::MulAdd(weight, pair[r].first, sum.first);
      sum.second = hn::MulAdd(weight, pair[r].second, sum.second);
    }
    hn::StoreU(sum.first, d, sums);
    hn::StoreU(sum.second, d, sums + kLanes);
  }
}

// Adds kRows rows from `j` on; the first weights are those of the first of these rows.
template <std::size_t kRows, class T>
HWY_INLINE void add_rows(const RowWeights& weights, const Rows<T>& rows, const auto& ahead, std::int64_t j,
                         const QueryRows<float>& sums) {
  const T* const row = rows.row(j);
  const std::size_t whole = rows.width / kPair * kPair;
  Pair pair[kRows];
  for (std::size_t i = 0; i < whole; i += kPair) {
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRows; ++r) {
      const std::int64_t at = r;
      pair[r] = load_pair(row + at * rows.stride + i);
      ahead.template fetch<T>(j + at, i);
    }
    add_pairs<kRows>(weights, pair, {sums.data + i, sums.stride});
  }
  if (whole == rows.width) return;
#pragma GCC unroll 8
  for (std::size_t r = 0; r < kRows; ++r)
    pair[r] = load_pair(row + static_cast<std::int64_t>(r) * rows.stride + whole, rows.width - whole);
  add_pairs<kRows>(weights, pair, {sums.data + whole, sums.stride});
}

// sums[q] += sum over j in [begin, end) of weights[q][j] * rows[j].
template <class T>
HWY_INLINE void add_weighted(const RowWeights& weights, const Rows<T>& rows, const auto& ahead,
                             std::int64_t begin, std::int64_t end, const QueryRows<float>& sums) {
  constexpr std::int64_t kStep = kValueRows;
  std::int64_t j = begin;
  for (; j + kStep <= end; j += kStep) add_rows<kValueRows>(weights.from(0, j), rows, ahead, j, sums);
  for (; j < end; ++j) add_rows<1>(weights.from(0, j), rows, ahead, j, sums);
}

}  // namespace sluice::backend::cpu::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
