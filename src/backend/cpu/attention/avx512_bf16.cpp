// Queries and weights consist of pieces as for AMX (amx_bf16.h), but the pieces' products are added to one
// sum directly.
//
// Scores: the pairs are neighbouring coordinates, as they are stored. Sixteen sums, for as many rows as that
// takes, stay in registers until their lanes are added up. Sums of values: the pairs are neighbouring rows,
// whose columns are interleaved as they are read; two vectors of columns for eight queries stay in registers
// from the first row of a block to the last. Both are one chain of products in ascending order in any tile:
// tiling never changes a bit.
#include "backend/cpu/attention/avx512_bf16.h"

#include <cstring>
#include <type_traits>

#include "backend/cpu/attention/bf16_pieces.h"

#if SLUICE_HAS_AMX

namespace sluice::backend::cpu::attention {

namespace {

using bf16::kKeyRows;
using bf16::kStep;
using bf16::kValueStep;
using Half = bf16::Half;

constexpr std::size_t kSums = 16;  // in a tile of scores

SLUICE_BF16_VECTORS inline __m512bh load_pairs(const Half* from) {
  return reinterpret_cast<__m512bh>(_mm512_loadu_si512(from));
}

// Lane i becomes the sum of the lanes of v[i]. Every round merges two vectors into one, half of whose lanes
// are sums of the first and half of the second. Lanes that keep their position are blended, which is cheaper
// than a shuffle.
SLUICE_BF16_VECTORS inline __m512 sum_lanes(__m512 (&v)[kSums]) {
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i)
    v[i] = _mm512_add_ps(_mm512_mask_blend_ps(0xff00, v[i], v[i + 8]),
                         _mm512_shuffle_f32x4(v[i], v[i + 8], 0x4e));
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512 others = _mm512_mask_blend_ps(0xf0f0, v[i + 4], v[i]);
    v[i] = _mm512_add_ps(_mm512_mask_blend_ps(0xf0f0, v[i], v[i + 4]),
                         _mm512_shuffle_f32x4(others, others, 0xb1));
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const __m512d first = _mm512_castps_pd(v[i]);
    const __m512d second = _mm512_castps_pd(v[i + 2]);
    v[i] = _mm512_add_ps(_mm512_castpd_ps(_mm512_mask_blend_pd(0xaa, first, second)),
                         _mm512_castpd_ps(_mm512_shuffle_pd(first, second, 0x55)));
  }
  return _mm512_add_ps(_mm512_mask_blend_ps(0xaaaa, v[0], v[1]),
                       _mm512_permute_ps(_mm512_mask_blend_ps(0xaaaa, v[1], v[0]), 0xb1));
}

// Stores lanes [r * kQueries, (r + 1) * kQueries) to row r of the dots.
template <int kQueries>
SLUICE_BF16_VECTORS inline void store_dots(__m512 sums, bool add, float* dots, std::size_t row_floats) {
  for (std::size_t r = 0; r < kSums / kQueries; ++r) {
    const auto lanes = static_cast<__mmask16>(((1u << kQueries) - 1) << (r * kQueries));
    float* const to = dots + r * row_floats - r * kQueries;
    const __m512 all = add ? _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, to), sums) : sums;
    _mm512_mask_storeu_ps(to, lanes, all);
  }
}

// kKeyRows keys times kQueries queries, each of which has kPieces rows: dots[row * row_floats + query].
template <int kQueries, int kPieces>
SLUICE_BF16_VECTORS void score_rows(const bf16::KeyBlock& keys, const Half* queries, bool add,
                                    AttendAhead& ahead, float* dots, std::size_t row_floats) {
  constexpr int kRows = kSums / kQueries;
  const std::int64_t stride = keys.stride / 2;
  const std::size_t width = keys.width;
  for (std::size_t j = 0; j < kKeyRows; j += kRows) {
    const Half* row = keys.rows + static_cast<std::int64_t>(j) * stride;
    __m512 sum[kSums];
    for (auto& s : sum) s = _mm512_setzero_ps();
    for (std::size_t i = 0; i < width; i += kStep) {
      if (i % (2 * kStep) == 0) ahead.fetch(1);
      __m512bh key[kRows];
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) key[r] = load_pairs(row + r * stride + i);
#pragma GCC unroll 3
      for (int p = 0; p < kPieces; ++p) {
        const Half* piece = queries + p * width + i;
#pragma GCC unroll 8
        for (int q = 0; q < kQueries; ++q) {
          const __m512bh query = load_pairs(piece + q * kPieces * width);
#pragma GCC unroll 16
          for (int r = 0; r < kRows; ++r)
            sum[r * kQueries + q] = _mm512_dpbf16_ps(sum[r * kQueries + q], key[r], query);
        }
      }
    }
    store_dots<kQueries>(sum_lanes(sum), add, dots + j * row_floats, row_floats);
  }
}

// Packs the weights of pairs of rows: [pair][piece][query].
SLUICE_BF16_VECTORS void pack_pairs(const bf16::QueryWeights& weights, std::size_t begin, std::size_t end,
                                    Half* packed) {
  const auto [data, stride, queries, pieces] = weights;
  for (std::size_t s = begin; s < end; ++s)
    for (std::size_t q = 0; q < queries; ++q) {
      __m512 x = _mm512_loadu_ps(data + q * stride + s * kValueStep);
      for (std::size_t p = 0; p < pieces; ++p) {
        Half halves[kValueStep];
        bf16::store_piece(halves, bf16::take_piece(x));
        for (std::size_t pair = 0; pair < kValueStep / 2; ++pair)
          std::memcpy(packed + 2 * (((s * kValueStep / 2 + pair) * pieces + p) * queries + q),
                      halves + 2 * pair, 2 * sizeof(Half));
      }
    }
}

// kStep columns of the sums of kQueries queries. `weights` are those of the first of them, among `all`
// queries.
template <int kQueries, int kPieces>
SLUICE_BF16_VECTORS void weigh_columns(const bf16::ValueSteps& values, std::size_t column,
                                       const Half* weights, std::size_t all, AttendAhead& ahead,
                                       float* sums) {
  const auto [steps, begin, end, width] = values;
  __m512 low[kQueries];
  __m512 high[kQueries];
  for (int q = 0; q < kQueries; ++q) {
    low[q] = _mm512_loadu_ps(sums + q * width);
    high[q] = _mm512_loadu_ps(sums + q * width + 16);
  }
  for (std::size_t s = begin; s < end; ++s) {
    const auto* row = reinterpret_cast<const std::byte*>(steps[s].rows + column);
    const std::size_t row_bytes = steps[s].row_bytes;
    const Half* weight = weights + s * kValueStep * kPieces * all;
    for (std::size_t pair = 0; pair < kValueStep / 2; ++pair, row += 2 * row_bytes) {
      if (pair % 2 == 0) ahead.fetch(1);
      const __m512i first = _mm512_loadu_si512(row);
      const __m512i second = _mm512_loadu_si512(row + row_bytes);
      const auto left = reinterpret_cast<__m512bh>(_mm512_unpacklo_epi16(first, second));
      const auto right = reinterpret_cast<__m512bh>(_mm512_unpackhi_epi16(first, second));
#pragma GCC unroll 2
      for (int p = 0; p < kPieces; ++p, weight += 2 * all)
#pragma GCC unroll 8
        for (int q = 0; q < kQueries; ++q) {
          std::int32_t both = 0;
          std::memcpy(&both, weight + 2 * q, sizeof(both));
          const auto two = reinterpret_cast<__m512bh>(_mm512_set1_epi32(both));
          low[q] = _mm512_dpbf16_ps(low[q], left, two);
          high[q] = _mm512_dpbf16_ps(high[q], right, two);
        }
    }
  }
  for (int q = 0; q < kQueries; ++q) {
    _mm512_storeu_ps(sums + q * width, low[q]);
    _mm512_storeu_ps(sums + q * width + 16, high[q]);
  }
}

// Calls f(first, count) for groups of eight, four, two and one that make up `queries`; count is a constant.
template <class F>
void for_each_group(std::size_t queries, const F& f) {
  std::size_t q = 0;
  for (; q + 8 <= queries; q += 8) f(q, std::integral_constant<int, 8>());
  for (; q + 4 <= queries; q += 4) f(q, std::integral_constant<int, 4>());
  for (; q + 2 <= queries; q += 2) f(q, std::integral_constant<int, 2>());
  if (q < queries) f(q, std::integral_constant<int, 1>());
}

class PairProducts final : public AttendProducts {
 public:
  // [query][piece][coordinate]
  SLUICE_BF16_VECTORS void pack_queries(const float* queries, std::size_t stride, const Columns& columns,
                                        std::size_t width, Half*, Half* packed) const override {
    for (std::size_t q = 0; q < columns.queries; ++q)
      for (std::size_t i = 0; i < width; i += 16) {
        __m512 x = _mm512_loadu_ps(queries + q * stride + i);
        for (std::size_t p = 0; p < columns.pieces; ++p)
          bf16::store_piece(packed + (q * columns.pieces + p) * width + i, bf16::take_piece(x));
      }
  }

  void multiply_keys(const KeyBlock& keys, const Half* queries, const Columns& columns, bool add,
                     AttendAhead& ahead, float* dots) const override {
    AttendAhead nothing;
    for_each_group(columns.queries, [&](std::size_t q, auto count) {
      const auto score = columns.pieces == 1   ? score_rows<count, 1>
                         : columns.pieces == 2 ? score_rows<count, 2>
                                               : score_rows<count, 3>;
      score(keys, queries + q * columns.pieces * keys.width, add, q == 0 ? ahead : nothing, dots + q,
            summed(columns).all());
    });
  }
  void store_scores(const float* dots, const Columns& columns, float* scores,
                    std::size_t stride) const override {
    bf16::store_scores(dots, summed(columns), scores, stride);
  }

  std::size_t query_sums(std::size_t, std::size_t width) const override { return width; }
  std::size_t all_sums(std::size_t queries, std::size_t, std::size_t width) const override {
    return queries * width;
  }
  void add_values(const ValueSteps& values, const QueryWeights& weights, Half* packed, AttendAhead& ahead,
                  float* sums) const override {
    pack_pairs(weights, values.begin, values.end, packed);
    AttendAhead nothing;
    for (std::size_t column = 0; column < values.width; column += kStep)
      for_each_group(weights.queries, [&](std::size_t q, auto count) {
        const auto weigh = weights.pieces == 1 ? weigh_columns<count, 1> : weigh_columns<count, 2>;
        weigh(values, column, packed + 2 * q, weights.queries, q == 0 ? ahead : nothing,
              sums + q * values.width + column);
      });
  }
  // Of every 32 columns, four are in the first vector, the next four in the second, and so on.
  SLUICE_BF16_VECTORS void add_sums(const float* sums, std::size_t queries, std::size_t, std::size_t width,
                                    float* to) const override {
    const __m512i first = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(8));
    for (std::size_t i = 0; i < queries * width; i += kStep) {
      const __m512 low = _mm512_loadu_ps(sums + i);
      const __m512 high = _mm512_loadu_ps(sums + i + 16);
      _mm512_storeu_ps(to + i, _mm512_permutex2var_ps(low, first, high));
      _mm512_storeu_ps(to + i + 16, _mm512_permutex2var_ps(low, second, high));
    }
  }

 private:
  static Columns summed(const Columns& columns) { return {columns.queries, 1}; }
};

}  // namespace

const AttendProducts* attend_pairs(Isa isa) {
  static const PairProducts products;
  return simd::has_bf16_vectors(isa) ? &products : nullptr;
}

}  // namespace sluice::backend::cpu::attention

#else

namespace sluice::backend::cpu::attention {

const AttendProducts* attend_pairs(Isa) {
  return nullptr;
}

}  // namespace sluice::backend::cpu::attention

#endif
