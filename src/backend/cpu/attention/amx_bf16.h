// The products of attention by the matrix units of x86, which multiply tiles of BF16 numbers: scores of
// queries with keys, and sums of values under weights.
//
// A query's coordinate is the exact sum of three BF16 numbers, its pieces; two give it to 2^-18, and a BF16
// query is one. A weight, which nothing amplifies, takes two pieces, 2^-17, or one where it was rounded. Keys
// and values are BF16 rows of a cache, or 4-bit codes whose levels take two numbers each
// (packed/amx_bf16_q4.h). Every piece of a query is a column of its own of the product of keys and queries,
// and every piece of a weight some rows of the sums, so that few queries still fill a tile. What comes of a
// piece depends on it and on its row of the cache alone: tiling never changes a bit.
//
// The units multiply pairs of numbers. Pairs of keys are neighbouring coordinates, but those of values would
// be neighbouring rows, which do not lie side by side. So the pairs are neighbouring columns, and a weight
// meets them twice, followed by a zero for the even columns and after one for the odd: twice the products,
// and nothing to rearrange.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/attention/prefetch_rows.h"
#include "backend/cpu/runtime/isa.h"

namespace sluice::backend::cpu::attention::bf16 {

using Half = std::uint16_t;  // the bits of a BF16 number

constexpr std::size_t kKeyRows = 32;     // of a cache that are scored together
constexpr std::size_t kValueRows = 128;  // that are weighed together at most
constexpr std::size_t kStep = 32;        // coordinates of one product of tiles
constexpr std::size_t kValueStep = 16;   // rows of values of one
constexpr std::size_t kStrip = 64;       // a width of values is a multiple of it

// Whether this processor has such units and the system lets this process use them.
bool available(Isa isa);

constexpr std::size_t whole_tiles(std::size_t count) {
  return (count + 15) / 16;
}

// The columns of some queries: those of the first two pieces, or of the only one, then those of the third,
// in whole tiles each. So products with the small parts of keys, which the third pieces do without, are those
// of whole tiles.
struct Columns {
  std::size_t queries;
  std::size_t pieces = 3;  // or fewer
  constexpr std::size_t first() const { return 16 * whole_tiles((pieces == 1 ? 1 : 2) * queries); }
  constexpr std::size_t all() const { return first() + (pieces == 3 ? 16 * whole_tiles(queries) : 0); }
};

// Rows of tiles for the weights of some queries: of every query its pieces, of every piece the one for even
// columns and the one for odd.
constexpr std::size_t weight_rows(std::size_t queries, std::size_t pieces) {
  return 16 * whole_tiles(2 * pieces * queries);
}

// kValueStep rows of values.
struct ValueStep {
  const Half* rows;
  std::size_t row_bytes;  // from one to the next
};
// Those from `begin` to `end`, of rows of some width.
struct ValueSteps {
  const ValueStep* steps;
  std::size_t begin;
  std::size_t end;
  std::size_t width;
};

struct KeyBlock {
  const Half* rows;     // kKeyRows of them
  std::int64_t stride;  // bytes from one to the next
  std::size_t width;
};

// data[q * stride + j] is what query q gives row j, each to be written as some BF16 numbers.
struct QueryWeights {
  const float* data;
  std::size_t stride;
  std::size_t queries;
  std::size_t pieces;
};

// Memory of one worker for some queries at most.
struct Workspace {
  struct Sizes {
    Columns columns;
    std::size_t key_width;  // of all pieces of keys together
    std::size_t value_width;
  };
  static std::size_t bytes(const Sizes& sizes);
  Workspace() = default;
  Workspace(const Sizes& sizes, std::byte* at);
  // With the queries and sums of this one and the rest of another.
  Workspace beside(const Workspace& other) const;

  Half* queries = nullptr;   // tiles
  Half* prepared = nullptr;  // keys or values that are not read where they lie
  Half* weights = nullptr;   // tiles
  float* dots = nullptr;     // [kKeyRows][columns.all()]
  float* sums = nullptr;     // [weight_rows][value_width / 2]; of codes [2 * queries, in tiles][value_width]
  float* spare = nullptr;    // sums of one query
  Half* pieces = nullptr;    // of queries on their way to tiles
};

// Halves of the packed tiles are columns.all() * width.
void pack_queries(const float* queries, std::size_t stride, const Columns& columns, std::size_t width,
                  Half* pieces, Half* tiles);

// dots (+)= the keys times the queries.
void multiply_keys(const KeyBlock& keys, const Half* queries, const Columns& columns, bool add,
                   AttendAhead& ahead, float* dots);
// scores[q * stride + j] from dots.
void store_scores(const float* dots, const Columns& columns, float* scores, std::size_t stride);

// The weights of rows kValueStep * [begin, end) as tiles.
void pack_weights(const QueryWeights& weights, std::size_t begin, std::size_t end, Half* tiles);
// sums += `rows` rows of packed weights times the values.
void add_values(const ValueSteps& values, const Half* weights, std::size_t rows, AttendAhead& ahead,
                float* sums);
// to[q * width + i] = the sums of a query's pieces, in the order of the columns.
void add_sums(const float* sums, std::size_t count, std::size_t pieces, std::size_t width, float* to);

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

}  // namespace sluice::backend::cpu::attention::bf16
