#include "backend/cpu/attention/amx_bf16.h"

#include "backend/cpu/attention/amx_products.h"

#if SLUICE_HAS_AMX

namespace sluice::backend::cpu::attention::bf16 {

namespace {

constexpr std::size_t kTurns = 2;  // of fetching ahead, between two products of tiles

void configure() {
  simd::TileShape shape;
  for (int i = 0; i < 8; ++i) {
    shape.row_bytes[i] = 64;
    shape.rows[i] = 16;
  }
  simd::configure_tiles(shape);
}

// Packs sixteen columns as tiles, one per step of coordinates; null columns become zeros.
SLUICE_AMX_BF16 void pack_columns(const Half* const (&columns)[16], std::size_t width, Half* to) {
  for (std::size_t i = 0; i < width; i += kStep, to += kTileHalves) {
    __m512i v[16];
    for (int c = 0; c < 16; ++c)
      v[c] = columns[c] == nullptr ? _mm512_setzero_si512() : _mm512_loadu_si512(columns[c] + i);
    simd::transpose(v);
    for (int r = 0; r < 16; ++r) _mm512_storeu_si512(to + r * kStep, v[r]);
  }
}

// Keys read directly from the cache.
struct KeyRows {
  static constexpr int kParts = 1;
  const Half* rows;
  std::int64_t stride;
  AttendAhead& ahead;
  const Half* part(int, std::size_t i) const { return rows + i; }
  SLUICE_AMX_BF16 void prepare(std::size_t) const { ahead.fetch(1); }
  SLUICE_AMX_BF16 void pause() const { ahead.fetch(kTurns); }
};

// Columns of values as they lie in the cache.
struct ValueRows {
  static constexpr int kParts = 1;
  static constexpr std::size_t kWeightTiles = 2 * kValueRows * 16;  // columns meet each weight twice
  const ValueStep* steps;
  std::size_t column;
  AttendAhead& ahead;
  const Half* part(int, std::size_t s) const { return steps[s].rows + column; }
  std::size_t row_bytes(std::size_t s) const { return steps[s].row_bytes; }
  void prepare(std::size_t) const {}
  SLUICE_AMX_BF16 void pause() const { ahead.fetch(kTurns); }
};

// Room for keys, for values, or for a strip of levels; coded rows have two parts.
std::size_t prepared_halves(const Workspace::Sizes& s) {
  return 2 * std::max({kKeyRows * s.key_width, kValueStep * s.value_width, kValueRows * kStrip});
}

// Room for the weights of kValueRows rows.
std::size_t weight_halves(const Workspace::Sizes& s) {
  return weight_rows(s.columns.queries, 2) * 2 * kValueRows;
}

std::size_t round_up(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace

bool available(Isa isa) {
  return simd::has_tiles(isa, simd::TileProduct::bf16);
}

std::size_t Workspace::bytes(const Sizes& s) {
  const std::size_t rows = 16 * whole_tiles(2 * s.columns.queries);
  const std::size_t halves = (s.columns.pieces * s.columns.queries + s.columns.all()) * s.key_width +
                             prepared_halves(s) + weight_halves(s);
  return round_up(halves * sizeof(Half)) +
         (kKeyRows * s.columns.all() + (rows + 16) * s.value_width) * sizeof(float);
}

Workspace::Workspace(const Sizes& s, std::byte* at)
    : queries(reinterpret_cast<Half*>(at)),
      prepared(queries + s.columns.all() * s.key_width),
      weights(prepared + prepared_halves(s)),
      dots(reinterpret_cast<float*>(weights + weight_halves(s))),
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
      __m512 x = _mm512_loadu_ps(queries + q * stride + i);
      for (std::size_t p = 0; p < columns.pieces; ++p)
        store_piece(pieces + (p * count + q) * width + i, take_piece(x));
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

void multiply_keys(const KeyBlock& keys, const Half* queries, const Columns& columns, bool add,
                   AttendAhead& ahead, float* dots) {
  const KeyRows rows{keys.rows, keys.stride, ahead};
  multiply_all_columns(rows, keys.width, queries, columns, add, dots);
}

SLUICE_AMX_BF16 void store_scores(const float* dots, const Columns& columns, float* scores,
                                  std::size_t stride) {
  const std::size_t row_floats = columns.all();
  for (std::size_t q = 0; q < columns.queries; q += 8) {
    const std::size_t some = std::min<std::size_t>(8, columns.queries - q);
    const auto mask = static_cast<__mmask16>((1u << some) - 1);
    // Eight queries of a row, and of the row sixteen further.
    const auto load = [&](const float* from) SLUICE_AMX_BF16 {
      const __m512 lower = _mm512_maskz_loadu_ps(mask, from);
      const __m256 upper = _mm256_maskz_loadu_ps(static_cast<__mmask8>(mask), from + 16 * row_floats);
      return _mm512_mask_broadcast_f32x8(lower, 0xff00, upper);
    };
    __m512i v[16];
    for (std::size_t r = 0; r < 16; ++r) {
      const float* row = dots + r * row_floats + q;
      __m512 score = load(row);
      if (columns.pieces == 2) score = _mm512_add_ps(score, load(row + columns.queries));
      if (columns.pieces == 3)
        score = _mm512_add_ps(score, _mm512_add_ps(load(row + columns.queries), load(row + columns.first())));
      v[r] = _mm512_castps_si512(score);
    }
    simd::transpose(v);
    for (std::size_t c = 0; c < some; ++c) {
      _mm512_storeu_si512(scores + (q + c) * stride, v[c]);
      _mm512_storeu_si512(scores + (q + c) * stride + 16, v[8 + c]);
    }
  }
}

SLUICE_AMX_BF16 void pack_weights(const QueryWeights& weights, std::size_t begin, std::size_t end,
                                  Half* tiles) {
  for (std::size_t s = begin; s < end; ++s) {
    std::size_t r = 0;
    const auto store = [&](__m512i halves) SLUICE_AMX_BF16 {
      _mm512_storeu_si512(tiles + r / 16 * ValueRows::kWeightTiles + s * kTileHalves + r % 16 * kStep,
                          halves);
      ++r;
    };
    for (std::size_t q = 0; q < weights.queries; ++q) {
      __m512 x = _mm512_loadu_ps(weights.data + q * weights.stride + s * kValueStep);
      for (std::size_t p = 0; p < weights.pieces; ++p) {
        const __m512i first = _mm512_cvtepu16_epi32(take_piece(x));
        store(first);
        store(_mm512_slli_epi32(first, 16));
      }
    }
    while (r % 16 != 0) store(_mm512_setzero_si512());
  }
}

void add_values(const ValueSteps& values, const Half* weights, std::size_t rows, AttendAhead& ahead,
                float* sums) {
  const auto [steps, begin, end, width] = values;
  const StripSteps strip{begin, end, width / 2 * sizeof(float)};
  const auto run = [&](auto multiply, std::size_t column, std::size_t row) {
    multiply(ValueRows{steps, column, ahead}, strip, weights + row / 16 * ValueRows::kWeightTiles,
             sums + (row * width + column) / 2);
  };
  simd::order_memory();
  std::size_t column = 0;
  if (rows == 16)
    for (; column + 2 * kStrip <= width; column += 2 * kStrip)
      run(multiply_strip<1, 4, true, ValueRows>, column, 0);
  // The first rows of a strip have the values fetched, the others find them here.
  for (; column < width; column += kStrip) {
    run(rows < 32 ? multiply_strip<1, 2, true, ValueRows> : multiply_strip<2, 2, true, ValueRows>, column, 0);
    std::size_t row = 32;
    for (; row + 32 <= rows; row += 32) run(multiply_strip<2, 2, false, ValueRows>, column, row);
    if (row < rows) run(multiply_strip<1, 2, false, ValueRows>, column, row);
  }
}

SLUICE_AMX_BF16 void add_sums(const float* sums, std::size_t count, std::size_t pieces, std::size_t width,
                              float* to) {
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
  for (std::size_t q = 0; q < count; ++q, sums += pieces * width, to += width)
    for (std::size_t i = 0; i < width / 2; i += 16) {
      __m512 even = _mm512_loadu_ps(sums + i);
      __m512 odd = _mm512_loadu_ps(sums + width / 2 + i);
      if (pieces == 2) {
        even = _mm512_add_ps(even, _mm512_loadu_ps(sums + width + i));
        odd = _mm512_add_ps(odd, _mm512_loadu_ps(sums + width + width / 2 + i));
      }
      _mm512_storeu_ps(to + 2 * i, _mm512_permutex2var_ps(even, low, odd));
      _mm512_storeu_ps(to + 2 * i + 16, _mm512_permutex2var_ps(even, high, odd));
    }
}

Session::Session(bool used) : used_(used) {
  if (used_) configure();
}
Session::~Session() {
  if (used_) simd::release_tiles();
}

}  // namespace sluice::backend::cpu::attention::bf16

#else

namespace sluice::backend::cpu::attention::bf16 {

bool available(Isa) {
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
void multiply_keys(const KeyBlock&, const Half*, const Columns&, bool, AttendAhead&, float*) {}
void store_scores(const float*, const Columns&, float*, std::size_t) {}
void pack_weights(const QueryWeights&, std::size_t, std::size_t, Half*) {}
void add_values(const ValueSteps&, const Half*, std::size_t, AttendAhead&, float*) {}
void add_sums(const float*, std::size_t, std::size_t, std::size_t, float*) {}
Session::Session(bool used) : used_(used) {}
Session::~Session() = default;

}  // namespace sluice::backend::cpu::attention::bf16

#endif
