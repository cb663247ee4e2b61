#include "backend/cpu/attend_units.h"

#include <cstring>

#include "backend/cpu/attend_products_amx.h"

#if SLUICE_HAS_AMX

namespace sluice::backend::cpu::attend_units {

namespace {

// Turns of a step of 32 rows and 32 coordinates of keys, where those of values take one a pair of rows and
// strip; with those of the softmax that makes a block.
constexpr std::size_t kKeyTurns = 7;

void configure() {
  TileShape shape;
  for (int i = 0; i < 8; ++i) {
    shape.row_bytes[i] = 64;
    shape.rows[i] = 16;
  }
  configure_tiles(shape);
}

SLUICE_AMX_BF16 inline __m512 widen(__m256i halves) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

// x as the sum of kCount BF16 numbers, the largest first, each into rows `step` halves apart.
template <int kCount>
SLUICE_AMX_BF16 inline void split(__m512 x, Half* to, std::size_t step) {
  for (int p = 0; p < kCount; ++p, to += step) {
    const auto piece = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), piece);
    x = _mm512_sub_ps(x, widen(piece));
  }
}

// Sixteen columns as tiles, a step of coordinates each; columns that are null are zeros.
SLUICE_AMX_BF16 void pack_columns(const Half* const (&columns)[16], std::size_t width, Half* to) {
  for (std::size_t i = 0; i < width; i += kStep, to += kTileHalves) {
    __m512i v[16];
    for (int c = 0; c < 16; ++c)
      v[c] = columns[c] == nullptr ? _mm512_setzero_si512() : _mm512_loadu_si512(columns[c] + i);
    transpose(v);
    for (int r = 0; r < 16; ++r) _mm512_storeu_si512(to + r * kStep, v[r]);
  }
}

// Keys as they lie in the cache.
struct KeyRows {
  static constexpr int kParts = 1;
  const Half* rows;
  std::int64_t stride;
  AttendAhead& ahead;
  const Half* part(int, std::size_t i) const { return rows + i; }
  SLUICE_AMX_BF16 void prepare(std::size_t) const { ahead.fetch(kKeyTurns); }
};

// Values of a strip in pairs of rows. Unpacking takes turns between the quarters of 32 columns.
struct ValueRows {
  static constexpr int kParts = 1;
  const Half* const* rows;
  std::size_t column;
  Slots<1, kStep * kStrip> slots;
  AttendAhead& ahead;
  const Half* part(int p, std::size_t s) const { return slots.at(s, p); }
  SLUICE_AMX_BF16 void prepare(std::size_t s) const {
    Half* to = slots.at(s, 0);
    for (std::size_t r = s * kStep; r < (s + 1) * kStep; r += 2, to += 2 * kStrip) {
      ahead.fetch(1);
      for (std::size_t i = 0; i < kStrip; i += 32) {
        const __m512i a = _mm512_loadu_si512(rows[r] + column + i);
        const __m512i b = _mm512_loadu_si512(rows[r + 1] + column + i);
        _mm512_storeu_si512(to + 2 * i, _mm512_unpacklo_epi16(a, b));
        _mm512_storeu_si512(to + 2 * i + 32, _mm512_unpackhi_epi16(a, b));
      }
    }
  }
};

// Of keys, or of a strip of values; both may have two parts.
std::size_t prepared_halves(std::size_t key_width) {
  return 2 * std::max(kKeyRows * key_width, kValueRows * kStrip);
}

std::size_t round_up(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace

bool available() {
  return has_tiles(TileProduct::bf16);
}

std::size_t Workspace::bytes(const Sizes& s) {
  const std::size_t rows = 16 * whole_tiles(2 * s.columns.queries);
  const std::size_t halves = (s.columns.pieces * s.columns.queries + s.columns.all()) * s.key_width +
                             prepared_halves(s.key_width) + rows * kValueRows;
  return round_up(halves * sizeof(Half)) +
         (kKeyRows * s.columns.all() + (rows + 16) * s.value_width) * sizeof(float);
}

Workspace::Workspace(const Sizes& s, std::byte* at)
    : queries(reinterpret_cast<Half*>(at)),
      prepared(queries + s.columns.all() * s.key_width),
      weights(prepared + prepared_halves(s.key_width)),
      dots(reinterpret_cast<float*>(weights + 16 * whole_tiles(2 * s.columns.queries) * kValueRows)),
      sums(dots + kKeyRows * s.columns.all()),
      spare(sums + 16 * whole_tiles(2 * s.columns.queries) * s.value_width),
      pieces(reinterpret_cast<Half*>(spare + 16 * s.value_width)) {}

Workspace Workspace::beside(const Workspace& other) const {
  Workspace result = other;
  result.queries = queries;
  result.sums = sums;
  return result;
}

SLUICE_AMX_BF16 void pack_queries(const float* queries, std::size_t stride, const Columns& columns,
                                  std::size_t width, Half* pieces, Half* tiles) {
  const std::size_t count = columns.queries;
  for (std::size_t q = 0; q < count; ++q)
    for (std::size_t i = 0; i < width; i += 16) {
      const __m512 x = _mm512_loadu_ps(queries + q * stride + i);
      if (columns.pieces == 1)
        split<1>(x, pieces + q * width + i, 0);
      else
        split<3>(x, pieces + q * width + i, count * width);
    }
  const std::size_t first_rows = std::min<std::size_t>(columns.pieces, 2) * count;
  for (std::size_t tile = 0; 16 * tile < columns.all(); ++tile, tiles += 16 * width) {
    const Half* column[16];
    for (std::size_t c = 0; c < 16; ++c) {
      const std::size_t at = 16 * tile + c;
      const bool first = at < columns.first();
      const std::size_t row = first ? at : first_rows + at - columns.first();
      column[c] = row < (first ? first_rows : 3 * count) ? pieces + row * width : nullptr;
    }
    pack_columns(column, width, tiles);
  }
}

void multiply_keys(const Half* keys, std::int64_t stride, std::size_t width, const Half* queries,
                   const Columns& columns, bool add, AttendAhead& ahead, float* dots) {
  const KeyRows rows{keys, stride, ahead};
  multiply_all_columns(rows, width, queries, columns, add, dots);
}

SLUICE_AMX_BF16 void store_scores(const float* dots, const Columns& columns, float* scores,
                                  std::size_t stride) {
  const std::size_t row_floats = columns.all();
  for (std::size_t q = 0; q < columns.queries; q += 8) {
    const std::size_t some = std::min<std::size_t>(8, columns.queries - q);
    const auto mask = static_cast<__mmask16>((1u << some) - 1);
    // Eight queries of a row and of the sixteenth after it.
    const auto load = [&](const float* from) SLUICE_AMX_BF16 {
      const __m512 lower = _mm512_maskz_loadu_ps(mask, from);
      const __m256 upper = _mm256_maskz_loadu_ps(static_cast<__mmask8>(mask), from + 16 * row_floats);
      return _mm512_mask_broadcast_f32x8(lower, 0xff00, upper);
    };
    __m512i v[16];
    for (std::size_t r = 0; r < 16; ++r) {
      const float* row = dots + r * row_floats + q;
      __m512 score = load(row);
      if (columns.pieces != 1)
        score = _mm512_add_ps(score, _mm512_add_ps(load(row + columns.queries), load(row + columns.first())));
      v[r] = _mm512_castps_si512(score);
    }
    transpose(v);
    for (std::size_t c = 0; c < some; ++c) {
      _mm512_storeu_si512(scores + (q + c) * stride, v[c]);
      _mm512_storeu_si512(scores + (q + c) * stride + 16, v[8 + c]);
    }
  }
}

SLUICE_AMX_BF16 void split_weights(const float* weights, std::size_t stride, std::size_t count,
                                   std::size_t begin, std::size_t end, Half* tiles) {
  constexpr std::size_t kTileRows = kValueRows * 16;  // halves of sixteen rows
  const std::size_t rows = 2 * count;
  for (std::size_t s = begin; s < end; ++s) {
    const auto at = [&](std::size_t r) {
      return tiles + r / 16 * kTileRows + s * kTileHalves + r % 16 * kStep;
    };
    for (std::size_t q = 0; q < count; ++q)
      for (std::size_t j = 0; j < kStep; j += 16) {
        Half* const large = at(q) + j;
        split<2>(_mm512_loadu_ps(weights + q * stride + s * kStep + j), large,
                 static_cast<std::size_t>(at(count + q) + j - large));
      }
    for (std::size_t r = rows; r % 16 != 0; ++r) std::memset(at(r), 0, kStep * sizeof(Half));
  }
}

void add_values(const Half* const* rows, std::size_t column, std::size_t begin, std::size_t end,
                const Half* weights, std::size_t count, AttendAhead& ahead, Half* prepared, float* sums,
                std::size_t width) {
  const ValueRows values{rows, column, {prepared, 2 * count <= 16}, ahead};
  multiply_all_rows(values, weights, count, begin, end, sums + column, width);
}

SLUICE_AMX_BF16 void add_sums(const float* sums, std::size_t count, std::size_t width, float* to) {
  // Unpacking took turns between the quarters of 32 columns.
  const __m512i low = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
  const __m512i high = _mm512_setr_epi32(8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
  for (std::size_t q = 0; q < count; ++q)
    for (std::size_t i = 0; i < width; i += 32) {
      const float* large = sums + q * width + i;
      const float* small = large + count * width;
      const __m512 a = _mm512_add_ps(_mm512_loadu_ps(large), _mm512_loadu_ps(small));
      const __m512 b = _mm512_add_ps(_mm512_loadu_ps(large + 16), _mm512_loadu_ps(small + 16));
      float* at = to + q * width + i;
      _mm512_storeu_ps(at, _mm512_add_ps(_mm512_loadu_ps(at), _mm512_permutex2var_ps(a, low, b)));
      _mm512_storeu_ps(at + 16, _mm512_add_ps(_mm512_loadu_ps(at + 16), _mm512_permutex2var_ps(a, high, b)));
    }
}

Session::Session(bool used) : used_(used) {
  if (used_) configure();
}
Session::~Session() {
  if (used_) release_tiles();
}

}  // namespace sluice::backend::cpu::attend_units

#else

namespace sluice::backend::cpu::attend_units {

bool available() {
  return false;
}
std::size_t Workspace::bytes(const Sizes&) {
  return 0;
}
Workspace::Workspace(const Sizes&, std::byte*) {}
Workspace Workspace::beside(const Workspace&) const {
  return {};
}
void pack_queries(const float*, std::size_t, const Columns&, std::size_t, Half*, Half*) {}
void multiply_keys(const Half*, std::int64_t, std::size_t, const Half*, const Columns&, bool, AttendAhead&,
                   float*) {}
void store_scores(const float*, const Columns&, float*, std::size_t) {}
void split_weights(const float*, std::size_t, std::size_t, std::size_t, std::size_t, Half*) {}
void add_values(const Half* const*, std::size_t, std::size_t, std::size_t, const Half*, std::size_t,
                AttendAhead&, Half*, float*, std::size_t) {}
void add_sums(const float*, std::size_t, std::size_t, float*) {}
Session::Session(bool used) : used_(used) {}
Session::~Session() = default;

}  // namespace sluice::backend::cpu::attend_units

#endif
