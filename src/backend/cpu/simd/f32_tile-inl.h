// Small F32 matrix products from register tiles. A panel is a matrix [depth, kPanel] with two vectors per
// row; a tile has kTileRows rows of a panel. Every element is one chain of fused multiply-adds in the order
// of the depth, so its bits depend neither on the number of rows nor on a tile's position. Included once per
// instruction set.
#if defined(SLUICE_BACKEND_CPU_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_TILE_INL_H_
#undef SLUICE_BACKEND_CPU_TILE_INL_H_
#else
#define SLUICE_BACKEND_CPU_TILE_INL_H_
#endif

#include "backend/cpu/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::simd::HWY_NAMESPACE {

constexpr std::size_t kLanes = hn::MaxLanes(FloatTag());
constexpr std::size_t kPanel = 2 * kLanes;
constexpr std::size_t kTileRows = kLanes >= 16 ? 8 : 4;  // as many accumulators as there are registers for

struct Tile {
  FloatVec at[kTileRows][2];
};

HWY_INLINE void clear(Tile& tile) {
  const FloatTag d;
#pragma GCC unroll 8
  for (std::size_t r = 0; r < kTileRows; ++r) tile.at[r][0] = tile.at[r][1] = hn::Zero(d);
}

// Loads rows that are `stride` floats apart.
HWY_INLINE void load(Tile& tile, const float* from, std::size_t stride) {
  const FloatTag d;
#pragma GCC unroll 8
  for (std::size_t r = 0; r < kTileRows; ++r) {
    tile.at[r][0] = hn::LoadU(d, from + r * stride);
    tile.at[r][1] = hn::LoadU(d, from + r * stride + kLanes);
  }
}

HWY_INLINE void store(const Tile& tile, float* to, std::size_t stride) {
  const FloatTag d;
#pragma GCC unroll 8
  for (std::size_t r = 0; r < kTileRows; ++r) {
    hn::StoreU(tile.at[r][0], d, to + r * stride);
    hn::StoreU(tile.at[r][1], d, to + r * stride + kLanes);
  }
}

// Multiplies row r by factor[r].
HWY_INLINE void scale(Tile& tile, const float* factor) {
  const FloatTag d;
#pragma GCC unroll 8
  for (std::size_t r = 0; r < kTileRows; ++r) {
    const auto f = hn::Set(d, factor[r]);
    tile.at[r][0] = hn::Mul(f, tile.at[r][0]);
    tile.at[r][1] = hn::Mul(f, tile.at[r][1]);
  }
}

// tile += aT b: column r of a[depth, ..], whose rows are `step` floats apart, gives row r of the product.
// Reading `a` by rows needs one pointer, where reading it by columns would need one for each row of the tile.
HWY_INLINE void add_product(Tile& tile, const float* HWY_RESTRICT a, std::size_t step,
                            const float* HWY_RESTRICT panel, std::size_t depth) {
  const FloatTag d;
  for (std::size_t p = 0; p < depth; ++p, a += step, panel += kPanel) {
    const auto b0 = hn::LoadU(d, panel);
    const auto b1 = hn::LoadU(d, panel + kLanes);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kTileRows; ++r) {
      const auto x = hn::Set(d, a[r]);
      tile.at[r][0] = hn::MulAdd(x, b0, tile.at[r][0]);
      tile.at[r][1] = hn::MulAdd(x, b1, tile.at[r][1]);
    }
  }
}

// tile += aT b with aT lower triangular including the diagonal. Nothing is multiplied above it, because zero
// times a later row may be NaN.
HWY_INLINE void add_lower_product(Tile& tile, const float* HWY_RESTRICT a, std::size_t step,
                                  const float* HWY_RESTRICT panel) {
  const FloatTag d;
#pragma GCC unroll 8
  for (std::size_t p = 0; p < kTileRows; ++p) {
    const auto b0 = hn::LoadU(d, panel + p * kPanel);
    const auto b1 = hn::LoadU(d, panel + p * kPanel + kLanes);
#pragma GCC unroll 8
    for (std::size_t r = p; r < kTileRows; ++r) {
      const auto x = hn::Set(d, a[p * step + r]);
      tile.at[r][0] = hn::MulAdd(x, b0, tile.at[r][0]);
      tile.at[r][1] = hn::MulAdd(x, b1, tile.at[r][1]);
    }
  }
}

// tile -= aT b.
HWY_INLINE void subtract_product(Tile& tile, const float* HWY_RESTRICT a, std::size_t step,
                                 const float* HWY_RESTRICT panel, std::size_t depth) {
  const FloatTag d;
  for (std::size_t p = 0; p < depth; ++p, a += step, panel += kPanel) {
    const auto b0 = hn::LoadU(d, panel);
    const auto b1 = hn::LoadU(d, panel + kLanes);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kTileRows; ++r) {
      const auto x = hn::Set(d, a[r]);
      tile.at[r][0] = hn::NegMulAdd(x, b0, tile.at[r][0]);
      tile.at[r][1] = hn::NegMulAdd(x, b1, tile.at[r][1]);
    }
  }
}

// Solves (I + aT) y = tile in place, where aT is strictly lower triangular.
HWY_INLINE void solve_unit_lower(Tile& tile, const float* HWY_RESTRICT a, std::size_t step) {
  const FloatTag d;
#pragma GCC unroll 8
  for (std::size_t p = 0; p + 1 < kTileRows; ++p) {
#pragma GCC unroll 8
    for (std::size_t r = p + 1; r < kTileRows; ++r) {
      const auto x = hn::Set(d, a[p * step + r]);
      tile.at[r][0] = hn::NegMulAdd(x, tile.at[p][0], tile.at[r][0]);
      tile.at[r][1] = hn::NegMulAdd(x, tile.at[p][1], tile.at[r][1]);
    }
  }
}

// to[c, r] = from[r, c]; rows and columns are multiples of 4.
HWY_INLINE void transpose(const float* HWY_RESTRICT from, std::size_t from_stride, std::size_t rows,
                          std::size_t columns, float* HWY_RESTRICT to, std::size_t to_stride) {
  const hn::Full128<float> d;
  for (std::size_t c = 0; c < columns; c += 4)
    for (std::size_t r = 0; r < rows; r += 4) {
      const float* in = from + r * from_stride + c;
      const auto v0 = hn::LoadU(d, in), v1 = hn::LoadU(d, in + from_stride);
      const auto v2 = hn::LoadU(d, in + 2 * from_stride), v3 = hn::LoadU(d, in + 3 * from_stride);
      const auto low01 = hn::InterleaveLower(d, v0, v1), high01 = hn::InterleaveUpper(d, v0, v1);
      const auto low23 = hn::InterleaveLower(d, v2, v3), high23 = hn::InterleaveUpper(d, v2, v3);
      float* out = to + c * to_stride + r;
      hn::StoreU(hn::ConcatLowerLower(d, low23, low01), d, out);
      hn::StoreU(hn::ConcatUpperUpper(d, low23, low01), d, out + to_stride);
      hn::StoreU(hn::ConcatLowerLower(d, high23, high01), d, out + 2 * to_stride);
      hn::StoreU(hn::ConcatUpperUpper(d, high23, high01), d, out + 3 * to_stride);
    }
}

}  // namespace sluice::backend::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
