#include "backend/cpu/attention/packed/amx_bf16_q4.h"

#include <cstring>

#include "backend/cpu/attention/amx_products.h"

#if SLUICE_HAS_AMX

#include "base/integer_cast.h"
#include "quant/codebook.h"
#include "sluice/ops/dtype.h"

namespace sluice::backend::cpu::attention::packed {

namespace {

// The low bytes of the levels' parts, then their high bytes: a byte permute takes one micro-operation, a word
// permute two.
struct LevelTable {
  alignas(64) std::uint8_t large[64] = {};
  alignas(64) std::uint8_t small[64] = {};
  alignas(64) std::uint8_t twice[64];  // byte i / 2
  alignas(64) std::uint8_t pairs[64];  // byte i / 4 of a row, duplicated, then of the row 32 bytes further
  LevelTable() {
    for (std::size_t i = 0; i < 64; ++i) {
      twice[i] = static_cast<std::uint8_t>(i / 2);
      pairs[i] = static_cast<std::uint8_t>(i / 4 + i / 2 % 2 * 32);
    }
    for (std::size_t c = 0; c < 16; ++c) {
      const float level = kLevelScale * quant::codebook(4).float_levels()[c];
      const ops::BFloat16 first = ops::to_bfloat16(level);
      const ops::BFloat16 second = ops::to_bfloat16(level - ops::to_float(first));
      large[c] = static_cast<std::uint8_t>(first.bits);
      large[c + 16] = static_cast<std::uint8_t>(first.bits >> 8);
      small[c] = static_cast<std::uint8_t>(second.bits);
      small[c + 16] = static_cast<std::uint8_t>(second.bits >> 8);
    }
  }
};

const LevelTable& levels() {
  static const LevelTable table;
  return table;
}

// Each half of `bytes` has one byte of codes twice; returns the indices of both bytes of a level.
SLUICE_AMX_BF16 inline __m512i low_nibbles(__m512i bytes) {
  constexpr int kAndOr = 0xea;  // (a & b) | c
  return _mm512_ternarylogic_epi32(bytes, _mm512_set1_epi16(0x0f0f), _mm512_set1_epi16(0x1000), kAndOr);
}
SLUICE_AMX_BF16 inline __m512i high_nibbles(__m512i bytes) {
  return low_nibbles(_mm512_srli_epi16(bytes, 4));
}

SLUICE_AMX_BF16 inline __m256i load_codes(const std::uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

// Memory for prepared keys and values. With few queries, all of which are computed at once, two alternating
// slots stay in the first-level cache; with more, all steps are kept, because they are read again.
template <int kParts_, std::size_t kSlotHalves>
struct Slots {
  static constexpr int kParts = kParts_;
  bf16::Half* memory;
  std::size_t mask;
  Slots(bf16::Half* memory, bool once) : memory(memory), mask(once ? 1 : ~std::size_t{0}) {}
  bf16::Half* at(std::size_t slot, int part) const {
    return memory + ((slot & mask) * kParts + to_size(part)) * kSlotHalves;
  }
};

// Unpacks the keys of a strip of coordinates, one strip ahead of the products.
struct CodedKeys {
  static constexpr int kParts = 2;
  static constexpr std::int64_t stride = bf16::kStrip * sizeof(bf16::Half);
  const std::uint8_t* const* rows;
  std::size_t width;
  Slots<2, bf16::kKeyRows * bf16::kStrip> slots;
  const LevelTable& table = levels();

  const bf16::Half* part(int p, std::size_t i) const {
    return slots.at(i / bf16::kStrip, p) + i % bf16::kStrip;
  }
  SLUICE_AMX_BF16 void prepare(std::size_t i) const {
    if (i % bf16::kStrip == 0 && i + bf16::kStrip < width) unpack(i + bf16::kStrip);
  }
  SLUICE_AMX_BF16 void pause() const {}
  SLUICE_AMX_BF16 void unpack(std::size_t at) const {
    const __m512i large = _mm512_load_si512(table.large);
    const __m512i small = _mm512_load_si512(table.small);
    const __m512i twice = _mm512_load_si512(table.twice);
    bf16::Half* to = slots.at(at / bf16::kStrip, 0);
    bf16::Half* to_small = slots.at(at / bf16::kStrip, 1);
    for (std::size_t r = 0; r < bf16::kKeyRows; ++r, to += bf16::kStrip, to_small += bf16::kStrip) {
      const __m512i codes = _mm512_castsi256_si512(load_codes(rows[r] + at / 2));
      const __m512i bytes = _mm512_permutexvar_epi8(twice, codes);
      const __m512i even = low_nibbles(bytes);
      const __m512i odd = high_nibbles(bytes);
      _mm512_storeu_si512(to, _mm512_permutexvar_epi8(even, large));
      _mm512_storeu_si512(to + 32, _mm512_permutexvar_epi8(odd, large));
      _mm512_storeu_si512(to_small, _mm512_permutexvar_epi8(even, small));
      _mm512_storeu_si512(to_small + 32, _mm512_permutexvar_epi8(odd, small));
    }
  }
};

// Values of a strip, interleaved by pairs of rows.
struct CodedValues {
  static constexpr int kParts = 2;
  static constexpr std::size_t kWeightTiles = bf16::kValueRows * 16;
  const std::uint8_t* const* rows;
  std::size_t column;
  Slots<2, bf16::kStep * bf16::kStrip> slots;
  const LevelTable& table = levels();

  const bf16::Half* part(int p, std::size_t s) const { return slots.at(s, p); }
  std::size_t row_bytes(std::size_t) const { return 2 * bf16::kStrip * sizeof(bf16::Half); }
  SLUICE_AMX_BF16 void pause() const {}
  SLUICE_AMX_BF16 void prepare(std::size_t s) const {
    const __m512i large = _mm512_load_si512(table.large);
    const __m512i small = _mm512_load_si512(table.small);
    const __m512i first = _mm512_load_si512(table.pairs);
    const __m512i second = _mm512_add_epi8(first, _mm512_set1_epi8(16));
    bf16::Half* to = slots.at(s, 0);
    bf16::Half* to_small = slots.at(s, 1);
    for (std::size_t r = s * bf16::kStep; r < (s + 1) * bf16::kStep;
         r += 2, to += 2 * bf16::kStrip, to_small += 2 * bf16::kStrip) {
      const __m512i codes = _mm512_inserti64x4(_mm512_castsi256_si512(load_codes(rows[r] + column / 2)),
                                               load_codes(rows[r + 1] + column / 2), 1);
      const __m512i bytes[] = {_mm512_permutexvar_epi8(first, codes), _mm512_permutexvar_epi8(second, codes)};
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const __m512i even = low_nibbles(bytes[half]);
        const __m512i odd = high_nibbles(bytes[half]);
        _mm512_storeu_si512(to + 32 * half, _mm512_permutexvar_epi8(even, large));
        _mm512_storeu_si512(to + 32 * half + 64, _mm512_permutexvar_epi8(odd, large));
        _mm512_storeu_si512(to_small + 32 * half, _mm512_permutexvar_epi8(even, small));
        _mm512_storeu_si512(to_small + 32 * half + 64, _mm512_permutexvar_epi8(odd, small));
      }
    }
  }
};

}  // namespace

void multiply_coded_keys(const std::uint8_t* const* rows, std::size_t width, const bf16::Half* queries,
                         const bf16::Columns& columns, bf16::Half* prepared, float* dots) {
  const CodedKeys keys{rows, width, {prepared, columns.all() <= 32}};
  keys.unpack(0);
  bf16::multiply_all_columns(keys, width, queries, columns, false, dots);
}

void add_coded_values(const CodedRows& coded, std::size_t column, std::size_t begin, std::size_t end,
                      std::size_t count, const bf16::Workspace& units) {
  const CodedValues values{coded.rows, column, {units.prepared, 2 * count <= 16}};
  const bf16::StripSteps strip{begin, end, coded.width * sizeof(float)};
  float* const sums = units.sums + column;
  bf16::multiply_strip<1, 4, true>(values, strip, units.weights, sums);
  for (std::size_t tile = 1; tile < bf16::whole_tiles(2 * count); ++tile)
    bf16::multiply_strip<1, 4, false>(values, strip, units.weights + tile * CodedValues::kWeightTiles,
                                      sums + tile * 16 * coded.width);
}

SLUICE_AMX_BF16 void split_weights(const float* weights, std::size_t stride, std::size_t count,
                                   std::size_t begin, std::size_t end, bf16::Half* tiles) {
  const std::size_t rows = 2 * count;
  for (std::size_t s = begin; s < end; ++s) {
    const auto at = [&](std::size_t r) {
      return tiles + r / 16 * CodedValues::kWeightTiles + s * bf16::kTileHalves + r % 16 * bf16::kStep;
    };
    for (std::size_t q = 0; q < count; ++q)
      for (std::size_t j = 0; j < bf16::kStep; j += 16) {
        __m512 x = _mm512_loadu_ps(weights + q * stride + s * bf16::kStep + j);
        bf16::store_piece(at(q) + j, bf16::take_piece(x));
        bf16::store_piece(at(count + q) + j, bf16::take_piece(x));
      }
    for (std::size_t r = rows; r % 16 != 0; ++r) std::memset(at(r), 0, bf16::kStep * sizeof(bf16::Half));
  }
}

SLUICE_AMX_BF16 void to_nibble_order(const float* row, std::size_t width, float* to) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  for (std::size_t i = 0; i < width; i += bf16::kStrip)
    for (std::size_t half = 0; half < 32; half += 16) {
      const __m512 a = _mm512_loadu_ps(row + i + 2 * half);
      const __m512 b = _mm512_loadu_ps(row + i + 2 * half + 16);
      _mm512_storeu_ps(to + i + half, _mm512_permutex2var_ps(a, even, b));
      _mm512_storeu_ps(to + i + 32 + half, _mm512_permutex2var_ps(a, odd, b));
    }
}

SLUICE_AMX_BF16 void add_coded_sums(const float* sums, std::size_t count, std::size_t width, float* to) {
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  for (std::size_t q = 0; q < count; ++q)
    for (std::size_t i = 0; i < width; i += bf16::kStrip)
      for (std::size_t half = 0; half < 32; half += 16) {
        const float* large = sums + q * width + i + half;
        const float* small = large + count * width;
        const __m512 even = _mm512_add_ps(_mm512_loadu_ps(large), _mm512_loadu_ps(small));
        const __m512 odd = _mm512_add_ps(_mm512_loadu_ps(large + 32), _mm512_loadu_ps(small + 32));
        float* at = to + q * width + i + 2 * half;
        _mm512_storeu_ps(at, _mm512_add_ps(_mm512_loadu_ps(at), _mm512_permutex2var_ps(even, low, odd)));
        at += 16;
        _mm512_storeu_ps(at, _mm512_add_ps(_mm512_loadu_ps(at), _mm512_permutex2var_ps(even, high, odd)));
      }
}

}  // namespace sluice::backend::cpu::attention::packed

#else

namespace sluice::backend::cpu::attention::packed {

void multiply_coded_keys(const std::uint8_t* const*, std::size_t, const bf16::Half*, const bf16::Columns&,
                         bf16::Half*, float*) {}
void add_coded_values(const CodedRows&, std::size_t, std::size_t, std::size_t, std::size_t,
                      const bf16::Workspace&) {}
void split_weights(const float*, std::size_t, std::size_t, std::size_t, std::size_t, bf16::Half*) {}
void to_nibble_order(const float*, std::size_t, float*) {}
void add_coded_sums(const float*, std::size_t, std::size_t, float*) {}

}  // namespace sluice::backend::cpu::attention::packed

#endif
