#include "backend/cpu/linear/integer/amx_int8.h"

#include "backend/cpu/linear/integer/amx_int8_tile.h"
#include "base/integer_cast.h"

#if SLUICE_HAS_AMX

#include <cstring>

namespace sluice::backend::cpu::linear::integer::amx {

namespace {

// The digits of sixteen integers: the even or the odd ones of sixteen pairs.
SLUICE_AMX inline void split(__m512i pairs, bool odd, std::uint8_t* high, std::uint8_t* low) {
  const __m512i q = odd ? _mm512_srai_epi32(pairs, 16) : _mm512_srai_epi32(_mm512_slli_epi32(pairs, 16), 16);
  const __m512i top =
      _mm512_srai_epi32(_mm512_add_epi32(q, _mm512_set1_epi32(1 << (kDigitBits - 1))), kDigitBits);
  const __m512i rest = _mm512_sub_epi32(q, _mm512_slli_epi32(top, kDigitBits));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(high), _mm512_cvtepi32_epi8(top));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(low), _mm512_cvtepi32_epi8(rest));
}

// One step of some rows in the order of the codes: the even columns, then the odd ones.
SLUICE_AMX inline void split_step(const PlainRow* rows, std::int64_t count, std::int64_t at,
                                  std::int64_t step, std::uint8_t (&digits)[2][kTokens][64]) {
  for (std::int64_t t = 0; t < count; ++t)
    for (std::int64_t i = 0; i < step / 2; i += 16) {
      const __m512i pairs = _mm512_loadu_si512(rows[t].integers + at + 2 * i);
      split(pairs, false, digits[0][t] + i, digits[1][t] + i);
      split(pairs, true, digits[0][t] + step / 2 + i, digits[1][t] + step / 2 + i);
    }
}

// Packs scales, then sums: for each group those of `width` tokens.
void pack_groups(const MatrixFormat& format, const PlainRow* rows, std::int64_t count, std::int64_t width,
                 float* scales) {
  float* sums = scales + format.groups() * width;
  std::memset(scales, 0, to_size(2 * format.groups() * width) * sizeof(float));
  for (std::int64_t g = 0; g < format.groups(); ++g)
    for (std::int64_t t = 0; t < count; ++t) {
      scales[g * width + t] = rows[t].scales[g];
      sums[g * width + t] = rows[t].sums[g];
    }
}

void configure(std::int64_t step) {
  simd::TileShape shape;
  for (int i = 0; i < 8; ++i) {
    const bool codes = i == 4 || i == 5;
    shape.row_bytes[i] = codes ? static_cast<std::uint16_t>(step) : std::uint16_t{64};
    shape.rows[i] = i >= 6 ? static_cast<std::uint8_t>(step / 4) : std::uint8_t{16};
  }
  simd::configure_tiles(shape);
}

}  // namespace

bool available(Isa isa) {
  return simd::has_tiles(isa, simd::TileProduct::bytes);
}

bool knows(const MatrixFormat& format) {
  return format.storage == Storage::affine4;
}

std::int64_t tile_bytes(const MatrixFormat& format) {
  return format.columns * 2 * kTokens + 2 * format.groups() * kTokens * 4;
}

SLUICE_AMX void pack_many(const MatrixFormat& format, const PlainRow* rows, std::int64_t count,
                          std::byte* tile) {
  const std::int64_t step = step_elements(format);
  auto* to = reinterpret_cast<std::uint8_t*>(tile);
  alignas(64) std::uint8_t digits[2][kTokens][64] = {};
  for (std::int64_t at = 0; at < format.columns; at += step) {
    split_step(rows, count, at, step, digits);
    for (auto& digit : digits) {
      __m512i v[16];
      for (int t = 0; t < 16; ++t) v[t] = _mm512_load_si512(digit[t]);
      simd::transpose(v);
      for (std::int64_t k = 0; k < step / 4; ++k, to += 64) _mm512_store_si512(to, v[k]);
    }
  }
  pack_groups(format, rows, count, kTokens, reinterpret_cast<float*>(to));
}

SLUICE_AMX void pack_few(const MatrixFormat& format, const PlainRow* rows, std::int64_t count,
                         std::byte* tile) {
  const std::int64_t step = step_elements(format);
  auto* to = reinterpret_cast<std::int32_t*>(tile);
  std::memset(to, 0, to_size(format.columns * kTokens));
  alignas(64) std::uint8_t digits[2][kTokens][64];
  for (std::int64_t at = 0; at < format.columns; at += step, to += step / 4 * kTokens) {
    split_step(rows, count, at, step, digits);
    for (int digit = 0; digit < 2; ++digit)
      for (std::int64_t t = 0; t < count; ++t)
        for (std::int64_t k = 0; k < step / 4; ++k)
          std::memcpy(to + k * kTokens + digit * kFew + t, digits[digit][t] + 4 * k, 4);
  }
  pack_groups(format, rows, count, kFew, reinterpret_cast<float*>(to));
}

Session::Session(const MatrixFormat& format) {
  configure(step_elements(format));
}

Session::~Session() {
  simd::release_tiles();
}

}  // namespace sluice::backend::cpu::linear::integer::amx

#else

namespace sluice::backend::cpu::linear::integer::amx {

bool available(Isa) {
  return false;
}
bool knows(const MatrixFormat&) {
  return false;
}
std::int64_t tile_bytes(const MatrixFormat&) {
  return 0;
}
void pack_many(const MatrixFormat&, const PlainRow*, std::int64_t, std::byte*) {}
void pack_few(const MatrixFormat&, const PlainRow*, std::int64_t, std::byte*) {}
void multiply_few(const Product&, std::int64_t, Scratch&) {}
void multiply_many(const Product&, std::int64_t, Scratch&) {}
Session::Session(const MatrixFormat&) {}
Session::~Session() = default;

}  // namespace sluice::backend::cpu::linear::integer::amx

#endif
