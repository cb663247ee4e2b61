// Attention's two products with 16-bit words: levels, queries and weights are integers. Included once per
// instruction set.
//
// A query is scaled by its largest coordinate, the weights of kBlockRows rows by the largest of them, levels
// as in word_levels.h. Sums of as many products as fit into 32 bits are exact and are then added in F32,
// always in the same groups: tiling never changes a bit. Queries are in the order of a chunk's levels; sums
// of values are in the order of levels with neighbouring rows interleaved.
#if defined(SLUICE_BACKEND_CPU_WORD_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_WORD_PRODUCTS_INL_H_
#undef SLUICE_BACKEND_CPU_WORD_PRODUCTS_INL_H_
#else
#define SLUICE_BACKEND_CPU_WORD_PRODUCTS_INL_H_
#endif

#include <algorithm>
#include <array>

#include "backend/cpu/attention/f32_products-inl.h"
#include "backend/cpu/attention/packed/call.h"
#include "backend/cpu/attention/packed/word_levels-inl.h"
#include "backend/cpu/attention/packed/word_space.h"

#if HWY_ARCH_X86

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::attention::packed::HWY_NAMESPACE {

using namespace attention::HWY_NAMESPACE;

using IntTag = hn::RebindToSigned<FloatTag>;
using IntVec = hn::Vec<IntTag>;

// sum += products of neighbouring words, added in pairs.
HWY_INLINE IntVec add_products(IntVec sum, ShortVec a, ShortVec b) {
#if HWY_TARGET == HWY_AVX3_DL
  return IntVec{_mm512_dpwssd_epi32(sum.raw, a.raw, b.raw)};
#else
  auto rest = hn::Zero(IntTag());
  return hn::ReorderWidenMulAccumulate(IntTag(), a, b, sum, rest);
#endif
}

// The coordinates of a chunk, as keys are read or as sums of values are stored.
template <class Levels, bool kValues>
constexpr auto chunk_order() {
  std::array<std::uint16_t, Levels::kChunk> order{};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t lane = i % kLanes;
    const std::size_t word = i / kWords * kWords + lane / 4 * 8 + lane % 4 + i % kWords / kLanes * 4;
    order[i] = static_cast<std::uint16_t>(Levels::coordinate(kValues ? word : i));
  }
  return order;
}

// Calls f(position, coordinate) for a row.
template <bool kValues, class F>
HWY_INLINE void for_each_coordinate(std::int64_t bits, std::size_t width, F&& f) {
  with_word_reader(bits, [&](const auto& levels) HWY_ATTR {
    using Levels = std::remove_cvref_t<decltype(levels)>;
    static constexpr auto kOrder = chunk_order<Levels, kValues>();
    for (std::size_t chunk = 0; chunk < width; chunk += Levels::kChunk)
      for (std::size_t i = 0; i < Levels::kChunk; ++i) f(chunk + i, chunk + kOrder[i]);
  });
}

// Reorders a row of sums to the order of the coordinates, with `copy` as temporary memory.
HWY_INLINE void order_sums(std::int64_t bits, std::size_t width, float* copy, float* row) {
  std::copy_n(row, width, copy);
  for_each_coordinate<true>(bits, width, [&](std::size_t at, std::size_t i) { row[i] = copy[at]; });
}

// The factor that scales `count` numbers to integers, and the one that scales them back: NaN if a number is
// not finite.
struct Rounding {
  float factor;
  float scale;
  HWY_INLINE Rounding(const float* x, std::size_t count) {
    const FloatTag d;
    auto largest = hn::Zero(d);
    auto zero = hn::Zero(d);  // NaN if a number is not finite
    for (std::size_t i = 0; i < count; i += kLanes) {
      const auto v = hn::LoadU(d, x + i);
      largest = hn::Max(largest, hn::Abs(v));
      zero = hn::MulAdd(v, hn::Zero(d), zero);
    }
    constexpr float kMost = kLargestFactor;
    const float bound = hn::GetLane(hn::MaxOfLanes(d, largest)) + hn::GetLane(hn::SumOfLanes(d, zero));
    factor = bound > 0 ? kMost / bound : 0;
    scale = bound / kMost;
  }
  HWY_INLINE void round(const float* x, std::size_t count, std::int16_t* to) const {
    const FloatTag d;
    const hn::Rebind<std::int16_t, FloatTag> words;
    for (std::size_t i = 0; i < count; i += kLanes)
      hn::StoreU(hn::DemoteTo(words, hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, factor)))), words,
                 to + i);
  }
};

// `queries` are in the order of the coordinates.
HWY_INLINE void pack_words(const float* queries, std::size_t count, std::int64_t bits,
                           const WordSpace& space) {
  const std::size_t width = space.width;
  auto* ordered = reinterpret_cast<float*>(space.levels);
  for (std::size_t q = 0; q < count; ++q, queries += width) {
    for_each_coordinate<false>(bits, width, [&](std::size_t at, std::size_t i) { ordered[at] = queries[i]; });
    const Rounding rounding(ordered, width);
    rounding.round(ordered, width, space.queries + q * width);
    space.query_scales[q] = rounding.scale / static_cast<float>(word_levels(bits).factor);
  }
}

// Calls f with a compile-time number of queries whose sums fit into registers, until all are done.
template <class F>
HWY_INLINE void for_each_word_tile(std::size_t queries, F&& f) {
  std::size_t q = 0;
  if constexpr (kManyRegisters)
    for (; q + 8 <= queries; q += 8) f(q, std::integral_constant<std::size_t, 8>());
  for (; q + 4 <= queries; q += 4) f(q, std::integral_constant<std::size_t, 4>());
  for (; q < queries; ++q) f(q, std::integral_constant<std::size_t, 1>());
}

// scores[q * stride + r] for kRows rows of levels and kQueries queries from `first` on, before scaling.
template <std::size_t kQueries, std::size_t kRows>
HWY_INLINE void score_words(const WordSpace& space, std::size_t first, const std::int16_t* levels,
                            float* scores, std::size_t stride) {
  const FloatTag d;
  const std::size_t width = space.width;
  const std::int16_t* const queries = space.queries + first * width;
  constexpr std::size_t kStretch = kExactProducts * kLanes;
  FloatVec sum[kQueries * kRows];
  for (std::size_t begin = 0; begin < width; begin += kStretch) {
    IntVec exact[kQueries * kRows];
    for (auto& s : exact) s = hn::Zero(IntTag());
    const std::size_t end = std::min(width, begin + kStretch);
    for (std::size_t i = begin; i < end; i += kWords) {
      ShortVec row[kRows];
      HWY_UNROLL(8)
      for (std::size_t r = 0; r < kRows; ++r) row[r] = hn::LoadU(ShortTag(), levels + r * width + i);
      HWY_UNROLL(8)
      for (std::size_t q = 0; q < kQueries; ++q) {
        const auto query = hn::LoadU(ShortTag(), queries + q * width + i);
        HWY_UNROLL(8)
        for (std::size_t r = 0; r < kRows; ++r)
          exact[q * kRows + r] = add_products(exact[q * kRows + r], row[r], query);
      }
    }
    HWY_UNROLL(16)
    for (std::size_t i = 0; i < kQueries * kRows; ++i) {
      const auto part = hn::ConvertTo(d, exact[i]);
      sum[i] = begin == 0 ? part : hn::Add(sum[i], part);
    }
  }
  alignas(16) float dots[kQueries * kRows];
  HWY_UNROLL(4)
  for (std::size_t i = 0; i < kQueries * kRows; i += 4)
    hn::Store(sum_lanes(sum[i], sum[i + 1], sum[i + 2], sum[i + 3]), Four(), dots + i);
  for (std::size_t q = 0; q < kQueries; ++q)
    std::memcpy(scores + q * stride, dots + q * kRows, kRows * sizeof(float));
}

// The codes of kBlockRows rows, of which [begin, end) are read and the others are replaced by the nearest
// one, and the turns of prefetching per two rows.
struct BlockCodes {
  std::int64_t bits;
  AttendAhead& ahead;
  std::size_t turns;
  const std::uint8_t* at[kBlockRows] = {};

  BlockCodes(const PackedRows& rows, std::int64_t bits, const RowRange& read, std::int64_t first,
             AttendAhead& ahead)
      : bits(bits), ahead(ahead), turns(to_size(2 * rows.stride + 255) / 256) {
    rows.for_each(first, read.begin, read.end,
                  [&](std::int64_t j, const std::uint8_t* codes, float) { at[j] = codes; });
    std::fill(at, at + read.begin, at[read.begin]);
    std::fill(at + read.end, at + kBlockRows, at[read.end - 1]);
  }
};

// scores[q * stride + r] of the rows of a block.
HWY_INLINE void score_block(const BlockCodes& codes, std::size_t queries, const WordSpace& space,
                            float* scores, std::size_t stride) {
  const std::size_t width = space.width;
  with_word_reader(codes.bits, [&](const auto& levels) HWY_ATTR {
    using Levels = std::remove_cvref_t<decltype(levels)>;
    constexpr std::size_t kVectors = Levels::kChunk / kWords;
    for (std::size_t r = 0; r < kBlockRows; ++r) {
      if (r % 2 == 0) codes.ahead.fetch(codes.turns);
      const std::uint8_t* from = codes.at[r];
      std::int16_t* to = space.levels + r * width;
      for (std::size_t i = 0; i < width; i += Levels::kChunk, from += Levels::kChunk * Levels::kBits / 8) {
        ShortVec vectors[kVectors];
        levels.read(from, vectors);
        HWY_UNROLL(8)
        for (std::size_t v = 0; v < kVectors; ++v) hn::Store(vectors[v], ShortTag(), to + i + v * kWords);
      }
    }
  });
  for_each_word_tile(queries, [&](std::size_t q, auto count) HWY_ATTR {
    constexpr std::size_t kQueries = decltype(count)::value;
    constexpr std::size_t kRows = std::min<std::size_t>(8, (kManyRegisters ? 16 : 8) / kQueries);
    for (std::size_t r = 0; r < kBlockRows; r += kRows)
      score_words<kQueries, kRows>(space, q, space.levels + r * width, scores + q * stride + r, stride);
  });
  const FloatTag d;
  for (std::size_t q = 0; q < queries; ++q)
    for (std::size_t r = 0; r < kBlockRows; r += kLanes) {
      float* const score = scores + q * stride + r;
      hn::StoreU(hn::Mul(hn::LoadU(d, score), hn::Set(d, space.query_scales[q])), d, score);
    }
}

// Packs the weights of a block as pairs of words: [pair][query].
HWY_INLINE void round_weights(const QueryRows<const float>& weights, std::size_t queries, float level_factor,
                              const WordSpace& space) {
  for (std::size_t q = 0; q < queries; ++q) {
    const Rounding rounding(weights.row(q), kBlockRows);
    space.weight_scales[q] = rounding.scale / level_factor;
    alignas(32) std::int16_t integers[kBlockRows];
    rounding.round(weights.row(q), kBlockRows, integers);
    for (std::size_t pair = 0; pair < kBlockRows / 2; ++pair)
      std::memcpy(space.weights + pair * queries + q, integers + 2 * pair, sizeof(std::int32_t));
  }
}

// sums of kQueries queries from `first` on += their weights times the levels of a block.
template <std::size_t kQueries>
HWY_INLINE void weigh_words(const WordSpace& space, std::size_t first, std::size_t queries, float* sums) {
  constexpr std::size_t kVectors = 2;
  const FloatTag d;
  const std::size_t width = space.width;
  const float* const scales = space.weight_scales + first;
  sums += first * width;
  for (std::size_t column = 0; column < width; column += kVectors * kLanes) {
    IntVec sum[kQueries * kVectors];
    for (auto& s : sum) s = hn::Zero(IntTag());
    const std::int16_t* levels = space.levels + 2 * column;
    const std::int32_t* weights = space.weights + first;
    // Unrolled, compilers build a tree of sums that does not fit into registers.
    HWY_UNROLL(1)
    for (std::size_t pair = 0; pair < kBlockRows / 2; ++pair, levels += 2 * width, weights += queries) {
      ShortVec level[kVectors];
      for (std::size_t v = 0; v < kVectors; ++v) level[v] = hn::Load(ShortTag(), levels + v * kWords);
      HWY_UNROLL(8)
      for (std::size_t q = 0; q < kQueries; ++q) {
        const auto both = hn::BitCast(ShortTag(), hn::Set(IntTag(), weights[q]));
        HWY_UNROLL(2)
        for (std::size_t v = 0; v < kVectors; ++v)
          sum[q * kVectors + v] = add_products(sum[q * kVectors + v], level[v], both);
      }
    }
    HWY_UNROLL(8)
    for (std::size_t q = 0; q < kQueries; ++q) HWY_UNROLL(2)
    for (std::size_t v = 0; v < kVectors; ++v) {
      float* const to = sums + q * width + column + v * kLanes;
      const auto part = hn::ConvertTo(d, sum[q * kVectors + v]);
      hn::StoreU(hn::MulAdd(part, hn::Set(d, scales[q]), hn::LoadU(d, to)), d, to);
    }
  }
}

// sums += the weights of a block times its levels.
HWY_INLINE void add_block(const BlockCodes& codes, const QueryRows<const float>& weights, std::size_t queries,
                          const WordSpace& space, float* sums) {
  const std::size_t width = space.width;
  round_weights(weights, queries, static_cast<float>(word_levels(codes.bits).factor), space);
  with_word_reader(codes.bits, [&](const auto& levels) HWY_ATTR {
    using Levels = std::remove_cvref_t<decltype(levels)>;
    constexpr std::size_t kVectors = Levels::kChunk / kWords;
    std::int16_t* to = space.levels;
    for (std::size_t r = 0; r < kBlockRows; r += 2) {
      codes.ahead.fetch(codes.turns);
      const std::uint8_t* a = codes.at[r];
      const std::uint8_t* b = codes.at[r + 1];
      for (std::size_t i = 0; i < width; i += Levels::kChunk) {
        ShortVec first[kVectors];
        ShortVec second[kVectors];
        levels.read(a, first);
        levels.read(b, second);
        a += Levels::kChunk * Levels::kBits / 8;
        b += Levels::kChunk * Levels::kBits / 8;
        HWY_UNROLL(8)
        for (std::size_t v = 0; v < kVectors; ++v, to += 2 * kWords) {
          hn::Store(hn::InterleaveLower(ShortTag(), first[v], second[v]), ShortTag(), to);
          hn::Store(hn::InterleaveUpper(ShortTag(), first[v], second[v]), ShortTag(), to + kWords);
        }
      }
    }
  });
  for_each_word_tile(queries, [&](std::size_t q, auto count)
                                  HWY_ATTR { weigh_words<decltype(count)::value>(space, q, queries, sums); });
}

}  // namespace sluice::backend::cpu::attention::packed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_ARCH_X86

#endif
