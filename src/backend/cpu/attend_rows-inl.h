// The two products of attention on register tiles: scores of queries with cache rows, and sums of cache rows
// under weights. Included once per instruction set.
//
// Cache rows are read two vectors at a time (a "pair"). Of BF16 rows the pair is the even and the odd
// elements, which costs one shift and one mask instead of two widening moves; queries and sums are kept in
// the same order, so that no lane ever moves. Whatever the tile, one score is one chain of multiply-adds over
// the pairs followed by the same tree over the lanes, and one sum is one chain over the rows in rising order:
// tiling never changes a bit.
#if defined(SLUICE_BACKEND_CPU_ATTEND_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_ATTEND_ROWS_INL_H_
#undef SLUICE_BACKEND_CPU_ATTEND_ROWS_INL_H_
#else
#define SLUICE_BACKEND_CPU_ATTEND_ROWS_INL_H_
#endif

#include <hwy/cache_control.h>

#include <algorithm>

#include "backend/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::HWY_NAMESPACE {

constexpr std::size_t kLanes = hn::MaxLanes(FloatTag());
constexpr std::size_t kPair = 2 * kLanes;  // elements of one step
// Queries that share one pass over rows; eight need 32 vector registers.
constexpr std::size_t kMaxQueries = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64 ? 8 : 4;

// Rows that share one load of the queries: as many as leave their sums and pairs in registers.
constexpr std::size_t rows_at_once(std::size_t queries) {
  return queries == kMaxQueries ? 2 : queries == 1 ? kMaxQueries : kMaxQueries / 2;
}

constexpr std::size_t padded(std::size_t width) {
  return (width + kPair - 1) / kPair * kPair;
}

struct Pair {
  FloatVec first;
  FloatVec second;
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

// The last, incomplete pair of a row; what lies behind the row is not read.
template <class T>
HWY_INLINE Pair load_pair(const T* from, std::size_t count) {
  T copy[kPair] = {};
  std::memcpy(copy, from, count * sizeof(T));
  return load_pair(copy);
}

// A padded row of floats into the order of BF16 pairs, and back.
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

// Rows that will be read next. They are fetched at the pace of the present ones, row by row and column by
// column, so that memory never idles; addresses behind the cache are harmless.
struct Ahead {
  std::uintptr_t data;
  std::int64_t stride;  // bytes
  template <class T>
  HWY_INLINE void fetch(std::int64_t row, std::size_t column) const {
    const std::uintptr_t at = data + static_cast<std::uintptr_t>(row * stride) + column * sizeof(T);
    for (std::size_t line = 0; line < kPair * sizeof(T); line += 64)
      hwy::Prefetch(reinterpret_cast<const std::byte*>(at + line));
  }
};

// For rows that are in the cache already.
struct NothingAhead {
  template <class T>
  HWY_INLINE void fetch(std::int64_t, std::size_t) const {}
};

// scores[q][j] (+)= queries[q] . rows[j] for j in [begin, end). May write kMaxQueries - 1 scores
// behind `end`.
template <bool kAdd, std::size_t kQueries, class T>
HWY_INLINE void score_tile(const float* HWY_RESTRICT queries, std::size_t query_stride, const Rows<T>& rows,
                           const auto& ahead, std::int64_t begin, std::int64_t end,
                           float* HWY_RESTRICT scores, std::size_t score_stride) {
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
        const float* query = queries + q * query_stride + i;
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
        float& score = scores[q * score_stride + static_cast<std::size_t>(j) + r];
        score = kAdd ? score + dots[q * kRows + r] : dots[q * kRows + r];
      }
  }
}

// sums[q] += sum over j in [begin, end) of weights[q][j] * rows[j], for kPairs pairs of columns from
// `column`.
template <std::size_t kQueries, std::size_t kPairs, class T>
HWY_INLINE void value_tile(const float* HWY_RESTRICT weights, std::size_t weight_stride, const Rows<T>& rows,
                           const auto& ahead, std::int64_t begin, std::int64_t end, std::size_t column,
                           float* HWY_RESTRICT sums, std::size_t sum_stride) {
  const FloatTag d;
  const std::size_t rest = std::min(rows.width - column, kPairs * kPair);
  Pair sum[kQueries * kPairs];
  for (std::size_t q = 0; q < kQueries; ++q)
    for (std::size_t p = 0; p < kPairs; ++p)
      sum[q * kPairs + p] = load_pair(sums + q * sum_stride + column + p * kPair);
  const auto step = [&](std::int64_t j, const Pair* pair) HWY_ATTR {
    for (std::size_t q = 0; q < kQueries; ++q) {
      const auto weight = hn::Set(d, weights[q * weight_stride + static_cast<std::size_t>(j)]);
      for (std::size_t p = 0; p < kPairs; ++p) {
        Pair& s = sum[q * kPairs + p];
        s.first = hn::MulAdd(weight, pair[p].first, s.first);
        s.second = hn::MulAdd(weight, pair[p].second, s.second);
      }
    }
  };
  Pair pair[kPairs];
  if (rest == kPairs * kPair) {
    for (std::int64_t j = begin; j < end; ++j) {
      for (std::size_t p = 0; p < kPairs; ++p) {
        pair[p] = load_pair(rows.row(j) + column + p * kPair);
        ahead.template fetch<T>(j, column + p * kPair);
      }
      step(j, pair);
    }
  } else {
    for (std::int64_t j = begin; j < end; ++j) {
      for (std::size_t p = 0; p < kPairs; ++p) pair[p] = load_pair(rows.row(j) + column, rest);
      step(j, pair);
    }
  }
  for (std::size_t q = 0; q < kQueries; ++q)
    for (std::size_t p = 0; p < kPairs; ++p) {
      float* to = sums + q * sum_stride + column + p * kPair;
      hn::StoreU(sum[q * kPairs + p].first, d, to);
      hn::StoreU(sum[q * kPairs + p].second, d, to + kLanes);
    }
}

// All columns.
template <std::size_t kQueries, class T>
HWY_INLINE void value_tiles(const float* weights, std::size_t weight_stride, const Rows<T>& rows,
                            const auto& ahead, std::int64_t begin, std::int64_t end, float* sums,
                            std::size_t sum_stride) {
  constexpr std::size_t kPairs = kMaxQueries / kQueries;
  std::size_t column = 0;
  for (; column + kPairs * kPair <= rows.width; column += kPairs * kPair)
    value_tile<kQueries, kPairs>(weights, weight_stride, rows, ahead, begin, end, column, sums, sum_stride);
  for (; column < rows.width; column += kPair)
    value_tile<kQueries, 1>(weights, weight_stride, rows, ahead, begin, end, column, sums, sum_stride);
}

}  // namespace sluice::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
