// The AMX instructions in plain C++; see tile_instructions.h.
#if SLUICE_EMULATE_AMX

#include "backend/cpu/simd/tile_instructions.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace sluice::backend::cpu::simd {

namespace {

// The tile registers of a thread.
struct Tiles {
  TileShape shape;
  std::uint8_t data[8][16][64];

  std::size_t rows(int tile) const { return shape.rows[tile]; }
  std::size_t columns(int tile) const { return shape.row_bytes[tile] / 4; }  // in units of four bytes
  template <class T>
  T& at(int tile, std::size_t row, std::size_t i) {
    return reinterpret_cast<T*>(data[tile][row])[i];
  }
};

Tiles& tiles() {
  thread_local Tiles registers{};
  return registers;
}

float to_float(std::uint16_t bf16) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bf16) << 16);
}

// Calls f(row, column, k) for every product of four bytes with four bytes.
template <class F>
void for_each_product(int sums, int a, F&& f) {
  Tiles& t = tiles();
  for (std::size_t row = 0; row < t.rows(sums); ++row)
    for (std::size_t k = 0; k < t.columns(a); ++k)
      for (std::size_t column = 0; column < t.columns(sums); ++column) f(t, row, column, k);
}

}  // namespace

void emulate_configure(const TileShape& shape) {
  tiles().shape = shape;
  std::memset(tiles().data, 0, sizeof tiles().data);
}

void emulate_zero(int tile) {
  std::memset(tiles().data[tile], 0, sizeof tiles().data[tile]);
}

void emulate_load(int tile, const void* from, std::size_t stride) {
  Tiles& t = tiles();
  emulate_zero(tile);
  for (std::size_t row = 0; row < t.rows(tile); ++row)
    std::memcpy(t.data[tile][row], static_cast<const std::byte*>(from) + row * stride,
                t.shape.row_bytes[tile]);
}

void emulate_store(int tile, void* to, std::size_t stride) {
  Tiles& t = tiles();
  for (std::size_t row = 0; row < t.rows(tile); ++row)
    std::memcpy(static_cast<std::byte*>(to) + row * stride, t.data[tile][row], t.shape.row_bytes[tile]);
}

void emulate_bytes(int sums, int a, int b, bool signed_a) {
  for_each_product(sums, a, [&](Tiles& t, std::size_t row, std::size_t column, std::size_t k) {
    for (std::size_t i = 0; i < 4; ++i) {
      const int left =
          signed_a ? int{t.at<std::int8_t>(a, row, 4 * k + i)} : int{t.at<std::uint8_t>(a, row, 4 * k + i)};
      t.at<std::int32_t>(sums, row, column) += left * t.at<std::int8_t>(b, k, 4 * column + i);
    }
  });
}

void emulate_bf16(int sums, int a, int b) {
  for_each_product(sums, a, [&](Tiles& t, std::size_t row, std::size_t column, std::size_t k) {
    for (std::size_t i = 0; i < 2; ++i)
      t.at<float>(sums, row, column) += to_float(t.at<std::uint16_t>(a, row, 2 * k + i)) *
                                        to_float(t.at<std::uint16_t>(b, k, 2 * column + i));
  });
}

}  // namespace sluice::backend::cpu::simd

#endif
