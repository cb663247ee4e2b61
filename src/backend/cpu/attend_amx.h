// The products of attention over 4-bit codes by the matrix units of x86, which multiply tiles of BF16
// numbers.
//
// A level is the exact sum of three BF16 numbers, and so is a query's coordinate: of the nine products the
// six largest leave 2^-24. Weights, which nothing amplifies, and levels of values take two numbers each and
// three products, 2^-17. A sum depends on its query and its row alone: tiling never changes a bit.
//
// Coordinates go by in the order of the codes' nibbles: of every 64 first the even ones, then the odd ones.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::backend::cpu::attend_amx {

constexpr std::size_t kRows = 32;  // of a cache, at once

// Whether this processor has them and the system lets this process use them.
bool available();
inline bool knows(std::int64_t bits, std::size_t width) {
  return bits == 4 && width % 64 == 0;
}

// Queries come in whole tiles.
std::size_t padded_queries(std::size_t count);
// Bytes of packed queries, and of what a worker needs besides; multiples of 64.
std::size_t query_bytes(std::size_t count, std::size_t width);
std::size_t scratch_bytes(std::size_t count);

// queries [count,width] as tiles.
void pack_queries(const float* queries, std::size_t count, std::size_t width, std::byte* tiles);
// scores[q * stride + j] = query q . levels of row j, for kRows rows of codes.
void score(const std::uint8_t* const* rows, std::size_t width, const std::byte* tiles, std::size_t count,
           float* scores, std::size_t stride, std::byte* scratch);
// sums[q * width + i] += sum over j of weights[q * stride + j] * level i of row j, in the order of nibbles.
// There is room for padded_queries(count) rows of sums.
void add_weighted(const std::uint8_t* const* rows, std::size_t width, const float* weights,
                  std::size_t stride, std::size_t count, float* sums, std::byte* scratch);

// Rows of floats into the order of nibbles and back.
void to_nibble_order(float* row, std::size_t width);
void from_nibble_order(float* row, std::size_t width);

// Between the first and the last product of a worker's task, where they are used at all.
class Session {
 public:
  explicit Session(bool used);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

 private:
  bool used_;
};

}  // namespace sluice::backend::cpu::attend_amx
