// The loops over tiles (amx_bf16.h): keys times queries, and weights times values. They are given what reads
// the rows: as they lie in a cache, or from codes (packed/amx_bf16_q4.h). The reader prepares what the next
// step needs while the units are busy with the present one.
#pragma once

#include "backend/cpu/attention/amx_bf16.h"
#include "backend/cpu/simd/matrix_units.h"

#if SLUICE_HAS_AMX

#include <algorithm>

#include "backend/cpu/attention/bf16_pieces.h"

#define SLUICE_AMX_BF16 __attribute__((target(SLUICE_BF16_TARGET ",amx-tile,amx-bf16")))

namespace sluice::backend::cpu::attention::bf16 {

constexpr std::size_t kTileHalves = 16 * kStep;

// dots, rows `row_bytes` apart, (+)= kKeyRows keys times kColumns tiles of queries, kSmall of which are also
// multiplied by the small parts. keys.part(p, i) is the address of coordinate i of part p of the first key.
template <int kColumns, int kSmall, bool kPrepare, class Keys>
SLUICE_AMX_BF16 void multiply_columns(const Keys& keys, std::size_t width, const Half* queries, bool add,
                                      float* dots, std::size_t row_bytes) {
  const std::size_t stride = keys.stride;
  const std::size_t half = 8 * stride;  // in halves: sixteen rows
  float* const lower = dots + 4 * row_bytes;
  if (add) {
    _tile_loadd(0, dots, row_bytes);
    _tile_loadd(1, lower, row_bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
  }
  if constexpr (kColumns == 2) {
    if (add) {
      _tile_loadd(2, dots + 16, row_bytes);
      _tile_loadd(3, lower + 16, row_bytes);
    } else {
      _tile_zero(2);
      _tile_zero(3);
    }
  }
  for (std::size_t i = 0; i < width; i += kStep) {
    if constexpr (kPrepare) keys.prepare(i);
    simd::order_memory();
    const Half* large = keys.part(0, i);
    _tile_loadd(4, large, stride);
    if constexpr (kPrepare) keys.pause();
    _tile_loadd(6, queries + 16 * i, 64);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kPrepare) keys.pause();
    _tile_loadd(5, large + half, stride);
    if constexpr (kPrepare) keys.pause();
    _tile_dpbf16ps(1, 5, 6);
    if constexpr (kColumns == 2) {
      _tile_loadd(7, queries + 16 * (width + i), 64);
      _tile_dpbf16ps(2, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
    }
    if constexpr (kSmall > 0) {
      const Half* small = keys.part(1, i);
      _tile_loadd(4, small, stride);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(5, small + half, stride);
      _tile_dpbf16ps(1, 5, 6);
    }
    if constexpr (kSmall > 1) {
      _tile_dpbf16ps(2, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, dots, row_bytes);
  _tile_stored(1, lower, row_bytes);
  if constexpr (kColumns == 2) {
    _tile_stored(2, dots + 16, row_bytes);
    _tile_stored(3, lower + 16, row_bytes);
  }
  simd::order_memory();
}

// Packed queries and their columns.
struct QueryTiles {
  const Half* data;
  const Columns& columns;
};

// The same for the two tiles of columns from `tile` on.
template <bool kPrepare, class Keys>
void multiply_two(const Keys& keys, std::size_t width, const QueryTiles& queries, std::size_t tile, bool add,
                  float* dots) {
  const Columns& columns = queries.columns;
  const std::size_t first = columns.first() / 16;
  const auto run = [&](auto multiply) {
    multiply(keys, width, queries.data + tile * 16 * width, add, dots + 16 * tile,
             columns.all() * sizeof(float));
  };
  if (16 * (tile + 1) == columns.all()) return run(multiply_columns<1, 0, kPrepare, Keys>);
  if constexpr (Keys::kParts == 2) {
    if (first == tile + 1) return run(multiply_columns<2, 1, kPrepare, Keys>);
    if (first > tile + 1) return run(multiply_columns<2, 2, kPrepare, Keys>);
  }
  run(multiply_columns<2, 0, kPrepare, Keys>);
}

// The same for all columns, two tiles at a time. The first two prepare the keys for the others.
template <class Keys>
void multiply_all_columns(const Keys& keys, std::size_t width, const Half* queries, const Columns& columns,
                          bool add, float* dots) {
  multiply_two<true>(keys, width, {queries, columns}, 0, add, dots);
  for (std::size_t tile = 2; 16 * tile < columns.all(); tile += 2)
    multiply_two<false>(keys, width, {queries, columns}, tile, add, dots);
}

// Steps of values, and the sums' rows `row_bytes` apart.
struct StripSteps {
  std::size_t begin;
  std::size_t end;
  std::size_t row_bytes;
};

// kRows x kColumns tiles of sums += weights times the values of some steps. values.part(p, s) is where step s
// of part p lies, rows or pairs of rows values.row_bytes(s) apart. Sixteen rows of weights are
// Values::kWeightTiles halves.
template <int kRows, int kColumns, bool kPrepare, class Values>
SLUICE_AMX_BF16 void multiply_strip(const Values& values, const StripSteps& steps, const Half* weights,
                                    float* sums) {
  static_assert(kRows * kColumns <= 4 && kColumns >= 2);
  const auto [begin, end, stride] = steps;
  float* const others = kRows == 2 ? sums + 4 * stride : sums + 32;  // of tiles 2 and 3
  _tile_loadd(0, sums, stride);
  _tile_loadd(1, sums + 16, stride);
  if constexpr (kRows * kColumns == 4) {
    _tile_loadd(2, others, stride);
    _tile_loadd(3, others + 16, stride);
  }
  if constexpr (kPrepare) values.prepare(begin);
  for (std::size_t s = begin; s < end; ++s) {
    if (kPrepare && s + 1 < end) values.prepare(s + 1);
    simd::order_memory();
    if constexpr (kPrepare) values.pause();
    _tile_loadd(6, weights + s * kTileHalves, 64);
    const std::size_t row_bytes = values.row_bytes(s);
#pragma GCC unroll 2
    for (int p = 0; p < Values::kParts; ++p) {
      const Half* const from = values.part(p, s);
      _tile_loadd(4, from, row_bytes);
      if constexpr (kPrepare) values.pause();
      _tile_dpbf16ps(0, 6, 4);
      _tile_loadd(5, from + 32, row_bytes);
      if constexpr (kPrepare) values.pause();
      _tile_dpbf16ps(1, 6, 5);
      if constexpr (kRows == 2) {
        if (p == 0) _tile_loadd(7, weights + Values::kWeightTiles + s * kTileHalves, 64);
        _tile_dpbf16ps(2, 7, 4);
        _tile_dpbf16ps(3, 7, 5);
      } else if constexpr (kColumns == 4) {
        _tile_loadd(4, from + 64, row_bytes);
        if constexpr (kPrepare) values.pause();
        _tile_dpbf16ps(2, 6, 4);
        _tile_loadd(5, from + 96, row_bytes);
        if constexpr (kPrepare) values.pause();
        _tile_dpbf16ps(3, 6, 5);
      }
    }
  }
  _tile_stored(0, sums, stride);
  _tile_stored(1, sums + 16, stride);
  if constexpr (kRows * kColumns == 4) {
    _tile_stored(2, others, stride);
    _tile_stored(3, others + 16, stride);
  }
  simd::order_memory();
}

}  // namespace sluice::backend::cpu::attention::bf16

#endif
