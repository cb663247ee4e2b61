// Integer products (product.h) by the matrix units of x86, which multiply tiles of sixteen rows of
// bytes. They take q as two digits: with few tokens both are columns of one tile, with many they are tiles of
// their own.
#pragma once

#include "backend/cpu/linear/integer/plain_row.h"
#include "backend/cpu/runtime/isa.h"

namespace sluice::backend::cpu::linear::integer::amx {

constexpr std::int64_t kTokens = 16;   // of a packed tile
constexpr std::int64_t kFew = 8;       // tokens with both digits in one tile
constexpr std::int64_t kRows = 32;     // weight rows multiplied together
constexpr std::int64_t kMaxTiles = 8;  // tiles of tokens multiplied together

// Whether this processor has them and the system lets this process use them.
bool available(Isa isa);

// Codes of 4 bits alone.
bool knows(const MatrixFormat& format);

// Bytes of a packed tile of x at most.
std::int64_t tile_bytes(const MatrixFormat& format);
// Packs up to kTokens rows, aligned to 64 bytes: as tiles of digits, behind them the scales and the sums. Up
// to kFew rows that are alone are packed for multiply_few.
void pack_many(const MatrixFormat& format, const PlainRow* rows, std::int64_t count, std::byte* tile);
void pack_few(const MatrixFormat& format, const PlainRow* rows, std::int64_t count, std::byte* tile);

// What one worker needs, aligned to 64 bytes.
struct Scratch {
  std::uint8_t codes[2][2][kRows / 16][16][64];  // of two groups, of up to two steps each
  std::int32_t sums[2][2][kRows][kTokens];       // of two groups, by digit
  float acc[4][kMaxTiles][kRows][kTokens];
};

// kRows rows of a matrix from `row` on, the last one repeated past the end, times packed rows of x: scales
// and biases lie group_step floats apart from row to row. out[token * out_step + r].
struct Product {
  const MatrixFormat& format;
  const Matrix& matrix;
  std::int64_t row;
  const float* scales;
  const float* biases;
  std::int64_t group_step;
  const std::byte* x;
  float* out;
  std::int64_t out_step;
};
void multiply_few(const Product& product, std::int64_t tokens, Scratch& scratch);
void multiply_many(const Product& product, std::int64_t tiles, Scratch& scratch);

// Between the first and the last product of a worker's task.
class Session {
 public:
  explicit Session(const MatrixFormat& format);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
};

}  // namespace sluice::backend::cpu::linear::integer::amx
