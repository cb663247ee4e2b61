#include "backend/cpu/attend_amx.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "backend/cpu/tile_units.h"

#if SLUICE_HAS_AMX

#include <immintrin.h>

#include "quant/codebook.h"
#include "sluice/ops/dtype.h"

// GCC 12 warns of its own _mm512_undefined().
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define SLUICE_AMX \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx2,fma,amx-tile,amx-bf16")))

namespace sluice::backend::cpu::attend_amx {

namespace {

constexpr std::size_t kQueries = 16;  // of a tile
constexpr std::size_t kStep = 32;     // coordinates of a product
constexpr std::size_t kTile = 16 * kStep * 2;
constexpr std::size_t kBlock = 64;  // coordinates decoded at once
constexpr std::size_t kPiece = kRows * kBlock;
constexpr int kKeyPieces = 3;
constexpr int kValuePieces = 2;
using Half = std::uint16_t;

Half round_half(float x) {
  return static_cast<Half>(ops::to_bfloat16(x).bits);
}
float widen(Half x) {
  return ops::to_float(ops::BFloat16{x});
}

// x as a sum of BF16 numbers, the largest first.
std::array<Half, kKeyPieces> pieces_of(float x) {
  std::array<Half, kKeyPieces> pieces{};
  for (Half& piece : pieces) {
    piece = round_half(x);
    x -= widen(piece);
  }
  return pieces;
}

// Entry [piece][nibble], twice over: a look-up takes five bits.
struct LevelTable {
  alignas(64) Half pieces[kKeyPieces][32];
  LevelTable() {
    for (std::size_t c = 0; c < 32; ++c) {
      const auto pieces_of_level = pieces_of(quant::codebook(4).float_levels()[c % 16]);
      for (std::size_t p = 0; p < kKeyPieces; ++p) pieces[p][c] = pieces_of_level[p];
    }
  }
};

const LevelTable& levels() {
  static const LevelTable table;
  return table;
}

// The coordinate at place i of the order of nibbles.
std::size_t coordinate(std::size_t i) {
  return i / 64 * 64 + (i % 64 < 32 ? 2 * (i % 32) : 2 * (i % 32) + 1);
}

void configure() {
  TileShape shape;
  for (int i = 0; i < 8; ++i) {
    shape.row_bytes[i] = 64;
    shape.rows[i] = 16;
  }
  configure_tiles(shape);
}

// 64 coordinates of keys from byte `at` of their rows: [piece][row][64] of levels in the order of nibbles.
SLUICE_AMX void decode_keys(const std::uint8_t* const* rows, std::size_t at, Half* to) {
  const LevelTable& table = levels();
  const __m512i first = _mm512_load_si512(table.pieces[0]);
  const __m512i second = _mm512_load_si512(table.pieces[1]);
  const __m512i third = _mm512_load_si512(table.pieces[2]);
  for (std::size_t r = 0; r < kRows; ++r, to += kBlock) {
    const __m512i even =
        _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[r] + at)));
    const __m512i odd = _mm512_srli_epi16(even, 4);
    _mm512_store_si512(to, _mm512_permutexvar_epi16(even, first));
    _mm512_store_si512(to + 32, _mm512_permutexvar_epi16(odd, first));
    _mm512_store_si512(to + kPiece, _mm512_permutexvar_epi16(even, second));
    _mm512_store_si512(to + kPiece + 32, _mm512_permutexvar_epi16(odd, second));
    _mm512_store_si512(to + 2 * kPiece, _mm512_permutexvar_epi16(even, third));
    _mm512_store_si512(to + 2 * kPiece + 32, _mm512_permutexvar_epi16(odd, third));
  }
}

// The same of values: [piece][pair of rows][64][2].
SLUICE_AMX void decode_values(const std::uint8_t* const* rows, std::size_t at, Half* to) {
  const LevelTable& table = levels();
  const __m512i first = _mm512_load_si512(table.pieces[0]);
  const __m512i second = _mm512_load_si512(table.pieces[1]);
  for (std::size_t r = 0; r < kRows; r += 2, to += 2 * kBlock) {
    // The middle quarters change places, so that unpacking keeps the order.
    const __m256i a =
        _mm256_permute4x64_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[r] + at)), 0xd8);
    const __m256i b = _mm256_permute4x64_epi64(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[r + 1] + at)), 0xd8);
    const __m512i low = _mm512_cvtepu8_epi16(_mm256_unpacklo_epi8(a, b));
    const __m512i high = _mm512_cvtepu8_epi16(_mm256_unpackhi_epi8(a, b));
    const __m512i odd_low = _mm512_srli_epi16(low, 4);
    const __m512i odd_high = _mm512_srli_epi16(high, 4);
    _mm512_store_si512(to, _mm512_permutexvar_epi16(low, first));
    _mm512_store_si512(to + 32, _mm512_permutexvar_epi16(high, first));
    _mm512_store_si512(to + 64, _mm512_permutexvar_epi16(odd_low, first));
    _mm512_store_si512(to + 96, _mm512_permutexvar_epi16(odd_high, first));
    _mm512_store_si512(to + kPiece, _mm512_permutexvar_epi16(low, second));
    _mm512_store_si512(to + kPiece + 32, _mm512_permutexvar_epi16(high, second));
    _mm512_store_si512(to + kPiece + 64, _mm512_permutexvar_epi16(odd_low, second));
    _mm512_store_si512(to + kPiece + 96, _mm512_permutexvar_epi16(odd_high, second));
  }
}

// Every other of 64 coordinates from `from` on into one column of a step's tiles.
SLUICE_AMX void pack_step(const float* from, std::byte* to, std::size_t piece_bytes) {
  alignas(64) Half pieces[kKeyPieces][kStep];
  for (std::size_t half = 0; half < 2; ++half) {
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    // What lies behind the last of them is not read: odd coordinates begin at the second.
    const __m512 low = _mm512_loadu_ps(from + 32 * half);
    const __m512 high = _mm512_maskz_loadu_ps(0x7fff, from + 32 * half + 16);
    __m512 x = _mm512_permutex2var_ps(low, even, high);
    for (auto& piece : pieces) {
      const __m256i rounded = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x));
      _mm256_store_si256(reinterpret_cast<__m256i*>(piece + 16 * half), rounded);
      x = _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(rounded), 16)));
    }
  }
  for (std::size_t p = 0; p < kKeyPieces; ++p)
    for (std::size_t pair = 0; pair < kStep / 2; ++pair)
      std::memcpy(to + p * piece_bytes + pair * 64, pieces[p] + 2 * pair, 4);
}

// Rows of sixteen floats become columns.
SLUICE_AMX inline void transpose(__m512 (&v)[16]) {
  __m512 w[16];
  for (int i = 0; i < 16; i += 2) {
    w[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
    w[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
  }
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; ++j) {
      const __m512d a = _mm512_castps_pd(w[i + j]);
      const __m512d b = _mm512_castps_pd(w[i + j + 2]);
      v[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
      v[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    }
  for (int i = 0; i < 4; ++i)
    for (int half = 0; half < 16; half += 8) {
      w[half + i] = _mm512_shuffle_f32x4(v[half + i], v[half + i + 4], 0x88);
      w[half + i + 4] = _mm512_shuffle_f32x4(v[half + i], v[half + i + 4], 0xdd);
    }
  for (int i = 0; i < 8; ++i) {
    v[i] = _mm512_shuffle_f32x4(w[i], w[i + 8], 0x88);
    v[i + 8] = _mm512_shuffle_f32x4(w[i], w[i + 8], 0xdd);
  }
}

// A block of keys times the same of one tile of queries, whose pieces lie `piece` apart, onto two halves of
// the sums: dots [2][kRows][kQueries]. Four chains of products keep the units busy.
SLUICE_AMX void multiply_keys(const Half* keys, const std::byte* queries, std::size_t piece, float* dots) {
  constexpr std::size_t kStride = kBlock * sizeof(Half);
  constexpr std::size_t kSums = 16 * kQueries;
  order_memory();
  _tile_loadd(0, dots, 64);
  _tile_loadd(1, dots + kSums, 64);
  _tile_loadd(2, dots + 2 * kSums, 64);
  _tile_loadd(3, dots + 3 * kSums, 64);
  for (std::size_t s = 0; s < kBlock; s += kStep, queries += kTile) {
    const Half* key = keys + s;
    _tile_loadd(4, key, kStride);
    _tile_loadd(5, key + 16 * kBlock, kStride);
    _tile_loadd(6, queries, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 5, 6);
    _tile_loadd(7, queries + piece, 64);
    _tile_dpbf16ps(2, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
    _tile_loadd(7, queries + 2 * piece, 64);
    _tile_dpbf16ps(2, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
    _tile_loadd(4, key + kPiece, kStride);
    _tile_loadd(5, key + kPiece + 16 * kBlock, kStride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 5, 6);
    _tile_loadd(7, queries + piece, 64);
    _tile_dpbf16ps(2, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
    _tile_loadd(4, key + 2 * kPiece, kStride);
    _tile_loadd(5, key + 2 * kPiece + 16 * kBlock, kStride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 5, 6);
  }
  _tile_stored(0, dots, 64);
  _tile_stored(1, dots + kSums, 64);
  _tile_stored(2, dots + 2 * kSums, 64);
  _tile_stored(3, dots + 3 * kSums, 64);
  order_memory();
}

// Sixteen rows of weights as two tiles; rows from `count` on are zero.
SLUICE_AMX void split_weights(const float* weights, std::size_t stride, std::size_t count, Half* to) {
  for (std::size_t q = 0; q < kQueries; ++q)
    for (std::size_t j = 0; j < kRows; j += 16) {
      const __m512 weight = q < count ? _mm512_loadu_ps(weights + q * stride + j) : _mm512_setzero_ps();
      const __m256i large = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(weight));
      const __m512 kept = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(large), 16));
      const __m256i small = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_sub_ps(weight, kept)));
      _mm256_store_si256(reinterpret_cast<__m256i*>(to + q * kRows + j), large);
      _mm256_store_si256(reinterpret_cast<__m256i*>(to + kTile / 2 + q * kRows + j), small);
    }
}

// A block of sums, rows `width` apart, += weights times a block of values, the four tiles of columns in turn.
SLUICE_AMX void multiply_values(const Half* weights, const Half* values, float* sums, std::size_t width) {
  constexpr std::size_t kStride = 2 * kBlock * sizeof(Half);
  const std::size_t stride = width * sizeof(float);
  order_memory();
  _tile_loadd(6, weights, 64);
  _tile_loadd(7, weights + kTile / 2, 64);
  _tile_loadd(0, sums, stride);
  _tile_loadd(1, sums + 16, stride);
  _tile_loadd(2, sums + 32, stride);
  _tile_loadd(3, sums + 48, stride);
  _tile_loadd(4, values, kStride);
  _tile_dpbf16ps(0, 6, 4);
  _tile_loadd(5, values + 32, kStride);
  _tile_dpbf16ps(1, 6, 5);
  _tile_loadd(4, values + 64, kStride);
  _tile_dpbf16ps(2, 6, 4);
  _tile_loadd(5, values + 96, kStride);
  _tile_dpbf16ps(3, 6, 5);
  _tile_loadd(4, values, kStride);
  _tile_dpbf16ps(0, 7, 4);
  _tile_loadd(5, values + 32, kStride);
  _tile_dpbf16ps(1, 7, 5);
  _tile_loadd(4, values + 64, kStride);
  _tile_dpbf16ps(2, 7, 4);
  _tile_loadd(5, values + 96, kStride);
  _tile_dpbf16ps(3, 7, 5);
  _tile_loadd(4, values + kPiece, kStride);
  _tile_dpbf16ps(0, 6, 4);
  _tile_loadd(5, values + kPiece + 32, kStride);
  _tile_dpbf16ps(1, 6, 5);
  _tile_loadd(4, values + kPiece + 64, kStride);
  _tile_dpbf16ps(2, 6, 4);
  _tile_loadd(5, values + kPiece + 96, kStride);
  _tile_dpbf16ps(3, 6, 5);
  _tile_stored(0, sums, stride);
  _tile_stored(1, sums + 16, stride);
  _tile_stored(2, sums + 32, stride);
  _tile_stored(3, sums + 48, stride);
  order_memory();
}

SLUICE_AMX void store_columns(const float* dots, std::size_t count, float* scores, std::size_t stride) {
  for (std::size_t half = 0; half < kRows; half += 16) {
    __m512 v[16];
    for (std::size_t r = 0; r < 16; ++r) {
      const float* row = dots + (half + r) * kQueries;
      v[r] = _mm512_add_ps(_mm512_load_ps(row), _mm512_load_ps(row + kRows * kQueries));
    }
    transpose(v);
    for (std::size_t q = 0; q < count; ++q) _mm512_storeu_ps(scores + q * stride + half, v[q]);
  }
}

}  // namespace

bool available() {
  return has_tiles(TileProduct::bf16);
}

std::size_t padded_queries(std::size_t count) {
  return (count + kQueries - 1) / kQueries * kQueries;
}

std::size_t query_bytes(std::size_t count, std::size_t width) {
  return padded_queries(count) / kQueries * kKeyPieces * width / kStep * kTile;
}

std::size_t scratch_bytes(std::size_t count) {
  const std::size_t tiles = padded_queries(count) / kQueries;
  return kKeyPieces * kPiece * sizeof(Half) +
         tiles * std::max(2 * kRows * kQueries * sizeof(float), kValuePieces * kTile);
}

void pack_queries(const float* queries, std::size_t count, std::size_t width, std::byte* tiles) {
  const std::size_t piece_bytes = width / kStep * kTile;
  if (count % kQueries != 0) std::memset(tiles, 0, query_bytes(count, width));
  for (std::size_t q = 0; q < count; ++q) {
    std::byte* tile = tiles + q / kQueries * kKeyPieces * piece_bytes + q % kQueries * 4;
    for (std::size_t i = 0; i < width; i += kStep)
      pack_step(queries + q * width + i / 64 * 64 + i % 64 / kStep, tile + i / kStep * kTile, piece_bytes);
  }
}

void score(const std::uint8_t* const* rows, std::size_t width, const std::byte* tiles, std::size_t count,
           float* scores, std::size_t stride, std::byte* scratch) {
  auto* keys = reinterpret_cast<Half*>(scratch);
  auto* dots = reinterpret_cast<float*>(keys + kKeyPieces * kPiece);
  const std::size_t piece = width / kStep * kTile;
  std::fill_n(dots, 2 * padded_queries(count) * kRows, 0.0F);
  for (std::size_t i = 0; i < width; i += kBlock) {
    decode_keys(rows, i / 2, keys);
    for (std::size_t q = 0; q < count; q += kQueries)
      multiply_keys(keys, tiles + q / kQueries * kKeyPieces * piece + i / kStep * kTile, piece,
                    dots + 2 * q * kRows);
  }
  for (std::size_t q = 0; q < count; q += kQueries)
    store_columns(dots + 2 * q * kRows, std::min(kQueries, count - q), scores + q * stride, stride);
}

void add_weighted(const std::uint8_t* const* rows, std::size_t width, const float* weights,
                  std::size_t stride, std::size_t count, float* sums, std::byte* scratch) {
  auto* values = reinterpret_cast<Half*>(scratch);
  auto* tiles = values + kKeyPieces * kPiece;
  for (std::size_t q = 0; q < count; q += kQueries)
    split_weights(weights + q * stride, stride, std::min(kQueries, count - q), tiles + q / kQueries * kTile);
  for (std::size_t i = 0; i < width; i += kBlock) {
    decode_values(rows, i / 2, values);
    for (std::size_t q = 0; q < count; q += kQueries)
      multiply_values(tiles + q / kQueries * kTile, values, sums + q * width + i, width);
  }
}

void to_nibble_order(float* row, std::size_t width) {
  float block[64];
  for (std::size_t i = 0; i < width; i += 64) {
    std::copy_n(row + i, 64, block);
    for (std::size_t c = 0; c < 64; ++c) row[i + c] = block[coordinate(c)];
  }
}

void from_nibble_order(float* row, std::size_t width) {
  float block[64];
  for (std::size_t i = 0; i < width; i += 64) {
    std::copy_n(row + i, 64, block);
    for (std::size_t c = 0; c < 64; ++c) row[i + coordinate(c)] = block[c];
  }
}

Session::Session(bool used) : used_(used) {
  if (used_) configure();
}
Session::~Session() {
  if (used_) release_tiles();
}

}  // namespace sluice::backend::cpu::attend_amx

#else

namespace sluice::backend::cpu::attend_amx {

bool available() {
  return false;
}
std::size_t padded_queries(std::size_t count) {
  return count;
}
std::size_t query_bytes(std::size_t, std::size_t) {
  return 0;
}
std::size_t scratch_bytes(std::size_t) {
  return 0;
}
void pack_queries(const float*, std::size_t, std::size_t, std::byte*) {}
void score(const std::uint8_t* const*, std::size_t, const std::byte*, std::size_t, float*, std::size_t,
           std::byte*) {}
void add_weighted(const std::uint8_t* const*, std::size_t, const float*, std::size_t, std::size_t, float*,
                  std::byte*) {}
void to_nibble_order(float*, std::size_t) {}
void from_nibble_order(float*, std::size_t) {}
Session::Session(bool used) : used_(used) {}
Session::~Session() = default;

}  // namespace sluice::backend::cpu::attend_amx

#endif
