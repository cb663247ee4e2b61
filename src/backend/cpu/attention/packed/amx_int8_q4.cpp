#include "backend/cpu/attention/packed/amx_int8_q4.h"

#include <cmath>

#include "backend/cpu/simd/matrix_units.h"

#if SLUICE_HAS_AMX

#include "backend/cpu/simd/tile_instructions.h"
#include "backend/cpu/simd/transpose_words.h"
#include "quant/codebook.h"

#define SLUICE_AMX_DIGITS                                                           \
  __attribute__((                                                                   \
      target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx2,fma,amx-tile,amx-" \
             "int8")))

namespace sluice::backend::cpu::attention::packed {

namespace {

constexpr std::size_t kTileBytes = 16 * kDigitStep;
constexpr std::size_t kLine = 64;
constexpr std::size_t kDigitColumns = 32;  // columns of values that are multiplied together
constexpr float kRadix = 256;
constexpr float kLargest = 127 * 256 + 127;  // that two digits can represent

// Levels times this are nearly integers: the errors are 6e-6 of their root mean square.
constexpr float kLevelFactor = 10140.62F;

// Tables of digits, indexed by a byte of codes: by its low nibble, whatever the two bits above it.
struct LevelDigits {
  alignas(64) Digit high[64];
  alignas(64) Digit low[64];
  alignas(64) std::uint8_t turns[64];  // interleaves the bytes of four rows of sixteen
  LevelDigits() {
    for (std::size_t i = 0; i < 64; ++i) {
      turns[i] = static_cast<std::uint8_t>(i % 4 * 16 + i / 4);
      const long level = std::lround(kLevelFactor * quant::codebook(4).levels()[i % 16]);
      low[i] = static_cast<Digit>(level);
      high[i] = static_cast<Digit>((level - low[i]) / 256);
    }
  }
};

const LevelDigits& levels() {
  static const LevelDigits table;
  return table;
}

// Each tile row is a cache line.
SLUICE_AMX_DIGITS inline void store_line(void* to, std::size_t line, __m512i v) {
  _mm512_store_si512(static_cast<Digit*>(to) + line * kLine, v);
}

// Splits sixteen numbers of at most kLargest into digits.
SLUICE_AMX_DIGITS inline void split(__m512 x, Digit* high, Digit* low) {
  const __m512i integer = _mm512_cvtps_epi32(x);
  const __m512i rounded = _mm512_srai_epi32(_mm512_add_epi32(integer, _mm512_set1_epi32(128)), 8);
  _mm_store_si128(reinterpret_cast<__m128i*>(high), _mm512_cvtepi32_epi8(rounded));
  _mm_store_si128(reinterpret_cast<__m128i*>(low), _mm512_cvtepi32_epi8(integer));
}

// Rounds `count` numbers into rows of a tile, with `step` bytes between stretches of kDigitStep; returns the
// factor that converts the integers back, NaN if a number is not finite.
SLUICE_AMX_DIGITS float split_row(const float* x, std::size_t count, Digit* high, Digit* low,
                                  std::size_t step) {
  __m512 largest = _mm512_setzero_ps();
  __m512 zero = _mm512_setzero_ps();  // NaN if a number is not finite
  for (std::size_t i = 0; i < count; i += 16) {
    const __m512 v = _mm512_loadu_ps(x + i);
    largest = _mm512_max_ps(largest, _mm512_abs_ps(v));
    zero = _mm512_fmadd_ps(v, _mm512_setzero_ps(), zero);
  }
  const float bound = _mm512_reduce_max_ps(largest) + _mm512_reduce_add_ps(zero);
  const __m512 factor = _mm512_set1_ps(bound > 0 ? kLargest / bound : 0);
  for (std::size_t i = 0; i < count; i += 16) {
    const std::size_t at = i / kDigitStep * step + i % kDigitStep;
    split(_mm512_mul_ps(_mm512_loadu_ps(x + i), factor), high + at, low + at);
  }
  return bound / kLargest;
}

// Levels of keys, kKeyRows rows per slot: the first digits, then the second digits.
struct DigitKeys {
  const std::uint8_t* const* rows;
  Digit* slots;
  std::size_t mask;
  AttendAhead& ahead;
  const LevelDigits& table = levels();

  Digit* slot(std::size_t step) const { return slots + (step & mask) * 4 * kTileBytes; }
  SLUICE_AMX_DIGITS void prepare(std::size_t step) const {
    const __m512i high = _mm512_load_si512(table.high);
    const __m512i low = _mm512_load_si512(table.low);
    const __m512i nibble = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(4), 1);
    Digit* const to = slot(step);
    for (std::size_t r = 0; r < bf16::kKeyRows; ++r) {
      if (r % 8 == 0) ahead.fetch(1);
      const __m256i bytes =
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[r] + step * kDigitStep / 2));
      const __m512i codes = _mm512_srlv_epi16(_mm512_broadcast_i64x4(bytes), nibble);
      store_line(to, r, _mm512_permutexvar_epi8(codes, high));
      store_line(to, bf16::kKeyRows + r, _mm512_permutexvar_epi8(codes, low));
    }
  }
};

// results = products of the four tiles in each slot [begin, end) of `rows` with the tiles of `other`. Rows of
// keys are the left operand, rows of values the right one.
template <bool kPrepare, bool kRowsLeft, class Rows>
SLUICE_AMX_DIGITS void multiply_slots(const Rows& rows, std::size_t begin, std::size_t end,
                                      const Digit* other, std::int32_t* results) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  if constexpr (kPrepare) rows.prepare(begin);
  for (std::size_t s = begin; s < end; ++s) {
    if (kPrepare && s + 1 < end) rows.prepare(s + 1);
    simd::order_memory();
    const Digit* const slot = rows.slot(s);
    _tile_loadd(6, other + s * kTileBytes, kLine);
    _tile_loadd(4, slot, kLine);
    _tile_loadd(5, slot + kTileBytes, kLine);
    if constexpr (kRowsLeft) {
      _tile_dpbssd(0, 4, 6);
      _tile_dpbssd(1, 5, 6);
    } else {
      _tile_dpbssd(0, 6, 4);
      _tile_dpbssd(1, 6, 5);
    }
    _tile_loadd(4, slot + 2 * kTileBytes, kLine);
    _tile_loadd(5, slot + 3 * kTileBytes, kLine);
    if constexpr (kRowsLeft) {
      _tile_dpbssd(2, 4, 6);
      _tile_dpbssd(3, 5, 6);
    } else {
      _tile_dpbssd(2, 6, 4);
      _tile_dpbssd(3, 6, 5);
    }
  }
  _tile_stored(0, results, kLine);
  _tile_stored(1, results + 256, kLine);
  _tile_stored(2, results + 512, kLine);
  _tile_stored(3, results + 768, kLine);
  simd::order_memory();
}

// Loads the two halves of a vector from two addresses.
SLUICE_AMX_DIGITS inline __m512i load_halves(const std::int32_t* lower, const std::int32_t* upper) {
  const __m256i a = _mm256_load_si256(reinterpret_cast<const __m256i*>(lower));
  const __m256i b = _mm256_load_si256(reinterpret_cast<const __m256i*>(upper));
  return _mm512_mask_broadcast_i64x4(_mm512_castsi256_si512(a), 0xf0, b);
}

// Combines products of digits: neighbouring orders differ by a factor of kRadix.
SLUICE_AMX_DIGITS inline __m512 join(__m512i first, __m512i second, __m512i third) {
  const __m512 radix = _mm512_set1_ps(kRadix);
  const __m512 upper = _mm512_fmadd_ps(_mm512_cvtepi32_ps(first), radix, _mm512_cvtepi32_ps(second));
  return _mm512_fmadd_ps(upper, radix, _mm512_cvtepi32_ps(third));
}

// Stores the products of slots of keys with `count` queries as scores.
SLUICE_AMX_DIGITS void store_scores(const std::int32_t* results, const float* scales, std::size_t count,
                                    float* scores, std::size_t stride) {
  __m512i v[16];
  for (int r = 0; r < 16; ++r) {
    const std::int32_t* at = results + 16 * r;  // of rows r and 16 + r
    const __m512i middle = _mm512_add_epi32(load_halves(at + 8, at + 264), load_halves(at + 512, at + 768));
    v[r] = _mm512_castps_si512(join(load_halves(at, at + 256), middle, load_halves(at + 520, at + 776)));
  }
  simd::transpose(v);
  for (std::size_t q = 0; q < count; ++q) {
    const __m512 scale = _mm512_set1_ps(scales[q]);
    float* const to = scores + q * stride;
    _mm512_storeu_ps(to, _mm512_mul_ps(scale, _mm512_castsi512_ps(v[q])));
    _mm512_storeu_ps(to + 16, _mm512_mul_ps(scale, _mm512_castsi512_ps(v[8 + q])));
  }
}

// Levels of kDigitColumns columns of values, one slot per step: first digits of even columns, of odd ones,
// then second digits. Bytes of four rows are interleaved.
struct DigitValues {
  const std::uint8_t* const* rows;
  std::size_t column;
  Digit* slots;
  AttendAhead& ahead;
  const LevelDigits& table = levels();

  Digit* slot(std::size_t step) const { return slots + step * 4 * kTileBytes; }
  SLUICE_AMX_DIGITS __m128i load(std::size_t row) const {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[row] + column / 2));
  }
  SLUICE_AMX_DIGITS void prepare(std::size_t step) const {
    const __m512i high = _mm512_load_si512(table.high);
    const __m512i low = _mm512_load_si512(table.low);
    const __m512i turns = _mm512_load_si512(table.turns);
    Digit* const to = slot(step);
    for (std::size_t line = 0; line < 16; ++line) {
      const std::size_t r = step * kDigitStep + 4 * line;
      if (line % 4 == 0) ahead.fetch(1);
      __m512i codes = _mm512_broadcast_i32x4(load(r));
      codes = _mm512_mask_broadcast_i32x4(codes, 0x00f0, load(r + 1));
      codes = _mm512_mask_broadcast_i32x4(codes, 0x0f00, load(r + 2));
      codes = _mm512_mask_broadcast_i32x4(codes, 0xf000, load(r + 3));
      const __m512i even = _mm512_permutexvar_epi8(turns, codes);
      const __m512i odd = _mm512_srli_epi16(even, 4);
      store_line(to, line, _mm512_permutexvar_epi8(even, high));
      store_line(to, 16 + line, _mm512_permutexvar_epi8(odd, high));
      store_line(to, 32 + line, _mm512_permutexvar_epi8(even, low));
      store_line(to, 48 + line, _mm512_permutexvar_epi8(odd, low));
    }
  }
};

// Adds the products of weights and slots of values to the sums.
SLUICE_AMX_DIGITS void add_results(const std::int32_t* results, const float* scales, std::size_t count,
                                   float* sums, std::size_t width) {
  for (std::size_t q = 0; q < count; ++q)
    for (std::size_t odd = 0; odd < 2; ++odd) {
      const std::int32_t* high = results + 256 * odd + 16 * q;
      const std::int32_t* low = high + 512;
      const __m512i middle = _mm512_add_epi32(_mm512_load_si512(high + 128), _mm512_load_si512(low));
      const __m512 sum = join(_mm512_load_si512(high), middle, _mm512_load_si512(low + 128));
      float* const to = sums + q * width + 16 * odd;
      _mm512_storeu_ps(to, _mm512_fmadd_ps(_mm512_set1_ps(scales[q]), sum, _mm512_loadu_ps(to)));
    }
}

constexpr std::size_t kValueSteps = bf16::kValueRows / kDigitStep;

std::size_t prepared_bytes(std::size_t width) {
  return std::max(bf16::kKeyRows * width * 2, kValueSteps * 4 * kTileBytes);
}

}  // namespace

bool multiplies_digits(Isa isa, std::int64_t bits, std::size_t width) {
  return bits == 4 && width % kDigitStep == 0 && simd::has_tiles(isa, simd::TileProduct::bytes);
}

std::size_t DigitSpace::bytes(std::size_t queries, std::size_t width) {
  const std::size_t groups = digit_groups(queries);
  return groups * 16 * (width + bf16::kValueRows) + prepared_bytes(width) + 4096 +
         (2 * groups * 16 + queries * width) * sizeof(float);
}

DigitSpace::DigitSpace(std::size_t count, std::size_t width, std::byte* at) {
  const std::size_t groups = digit_groups(count);
  queries = reinterpret_cast<Digit*>(at);
  weights = queries + groups * 16 * width;
  prepared = weights + groups * 16 * bf16::kValueRows;
  results = reinterpret_cast<std::int32_t*>(prepared + prepared_bytes(width));
  query_scales = reinterpret_cast<float*>(results + 1024);
  weight_scales = query_scales + groups * 16;
  sums = weight_scales + groups * 16;
}

SLUICE_AMX_DIGITS void pack_digits(const float* queries, std::size_t stride, std::size_t count,
                                   std::size_t width, const DigitSpace& space) {
  // Rows of queries are staged in `prepared` before they become columns.
  Digit* const rows = space.prepared;
  for (std::size_t first = 0; first < count; first += kDigitQueries) {
    Digit* const tiles = space.queries + first * 2 * width;
    const std::size_t some = std::min(kDigitQueries, count - first);
    std::fill_n(rows, 16 * width, Digit{0});
    for (std::size_t q = 0; q < some; ++q)
      space.query_scales[first + q] = split_row(queries + (first + q) * stride, width, rows + q * width,
                                                rows + (kDigitQueries + q) * width, kDigitStep) /
                                      kLevelFactor;
    for (std::size_t i = 0; i < width; i += kDigitStep) {
      __m512i v[16];
      for (std::size_t c = 0; c < 16; ++c) v[c] = _mm512_load_si512(rows + c * width + i);
      simd::transpose(v);
      for (std::size_t r = 0; r < 16; ++r) store_line(tiles + 16 * i, r, v[r]);
    }
  }
}

void score_digits(const CodedRows& coded, std::size_t count, const DigitSpace& space, AttendAhead& ahead,
                  float* scores, std::size_t stride) {
  const std::size_t steps = coded.width / kDigitStep;
  const DigitKeys keys{coded.rows, space.prepared, count <= kDigitQueries ? 1 : ~std::size_t{0}, ahead};
  for (std::size_t first = 0; first < count; first += kDigitQueries) {
    const auto multiply =
        first == 0 ? multiply_slots<true, true, DigitKeys> : multiply_slots<false, true, DigitKeys>;
    multiply(keys, 0, steps, space.queries + first * 2 * coded.width, space.results);
    store_scores(space.results, space.query_scales + first, std::min(kDigitQueries, count - first),
                 scores + first * stride, stride);
  }
}

SLUICE_AMX_DIGITS void split_weights(const bf16::QueryWeights& weights, std::size_t begin, std::size_t end,
                                     const DigitSpace& space) {
  for (std::size_t q = 0; q < weights.queries; ++q) {
    Digit* const high = space.weights + q / kDigitQueries * 16 * bf16::kValueRows + begin * kTileBytes +
                        q % kDigitQueries * kLine;
    space.weight_scales[q] =
        split_row(weights.data + q * weights.stride + begin * kDigitStep, (end - begin) * kDigitStep, high,
                  high + kDigitQueries * kLine, kTileBytes) /
        kLevelFactor;
  }
}

void add_digits(const CodedRows& coded, const bf16::QueryWeights& weights, std::size_t begin, std::size_t end,
                const DigitSpace& space, AttendAhead& ahead) {
  const auto [rows, width] = coded;
  const std::size_t count = weights.queries;
  split_weights(weights, begin, end, space);
  for (std::size_t column = 0; column < width; column += kDigitColumns) {
    const DigitValues values{rows, column, space.prepared, ahead};
    for (std::size_t first = 0; first < count; first += kDigitQueries) {
      const auto multiply =
          first == 0 ? multiply_slots<true, false, DigitValues> : multiply_slots<false, false, DigitValues>;
      multiply(values, begin, end, space.weights + first * 2 * bf16::kValueRows, space.results);
      add_results(space.results, space.weight_scales + first, std::min(kDigitQueries, count - first),
                  space.sums + first * width + column, width);
    }
  }
}

SLUICE_AMX_DIGITS void add_digit_sums(const DigitSpace& space, std::size_t count, std::size_t width,
                                      float* to) {
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
  for (std::size_t i = 0; i < count * width; i += kDigitColumns) {
    const __m512 even = _mm512_loadu_ps(space.sums + i);
    const __m512 odd = _mm512_loadu_ps(space.sums + i + 16);
    const __m512 first = _mm512_permutex2var_ps(even, low, odd);
    const __m512 second = _mm512_permutex2var_ps(even, high, odd);
    _mm512_storeu_ps(to + i, _mm512_add_ps(_mm512_loadu_ps(to + i), first));
    _mm512_storeu_ps(to + i + 16, _mm512_add_ps(_mm512_loadu_ps(to + i + 16), second));
  }
}

}  // namespace sluice::backend::cpu::attention::packed

#else

namespace sluice::backend::cpu::attention::packed {

bool multiplies_digits(Isa, std::int64_t, std::size_t) {
  return false;
}
std::size_t DigitSpace::bytes(std::size_t, std::size_t) {
  return 0;
}
DigitSpace::DigitSpace(std::size_t, std::size_t, std::byte*) {}
void pack_digits(const float*, std::size_t, std::size_t, std::size_t, const DigitSpace&) {}
void score_digits(const CodedRows&, std::size_t, const DigitSpace&, AttendAhead&, float*, std::size_t) {}
void add_digits(const CodedRows&, const bf16::QueryWeights&, std::size_t, std::size_t, const DigitSpace&,
                AttendAhead&) {}
void add_digit_sums(const DigitSpace&, std::size_t, std::size_t, float*) {}

}  // namespace sluice::backend::cpu::attention::packed

#endif
