// Integer products (product.h) with AMX, which multiplies tiles of sixteen rows of bytes. Integers of x are
// split into two digits: with few tokens both are columns of one tile, with many they are separate tiles.
#pragma once

#include "backend/cpu/linear/integer/plain_row.h"
#include "backend/cpu/runtime/isa.h"

namespace sluice::backend::cpu::linear::integer::amx {

constexpr std::int64_t kTokens = 16;   // per packed tile
constexpr std::int64_t kFew = 8;       // tokens with both digits in one tile
constexpr std::int64_t kRows = 32;     // weight rows that are multiplied together
constexpr std::int64_t kMaxTiles = 8;  // tiles of tokens that are multiplied together

// Whether this processor has AMX and the system lets this process use it.
bool available(Isa isa);

// Whether codes have 4 bits, which alone are supported.
bool knows(const MatrixFormat& format);

// Maximum bytes of a packed tile of x.
std::int64_t tile_bytes(const MatrixFormat& format);
// Packs up to kTokens rows, aligned to 64 bytes: tiles of digits, followed by the scales and the sums. If
// there are at most kFew rows, they are packed for multiply_few.
void pack_many(const MatrixFormat& format, const PlainRow* rows, std::int64_t count, std::byte* tile);
void pack_few(const MatrixFormat& format, const PlainRow* rows, std::int64_t count, std::byte* tile);

// Scratch memory of one worker, aligned to 64 bytes.
struct Scratch {
  std::uint8_t codes[2][2][kRows / 16][16][64];  // for two groups of up to two steps each
  std::int32_t sums[2][2][kRows][kTokens];       // for two groups, by digit
  float acc[4][kMaxTiles][kRows][kTokens];
};

// kRows rows of a matrix from `row` on, with the last one repeated past the end, times packed rows of x.
// Scales and biases of neighbouring rows are group_step floats apart. out[token * out_step + r].
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

// Configures the tiles of a worker for its task.
class Session {
 public:
  explicit Session(const MatrixFormat& format);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
};

}  // namespace sluice::backend::cpu::linear::integer::amx
