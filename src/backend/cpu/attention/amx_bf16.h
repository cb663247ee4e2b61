// The products of attention with AMX, which multiplies tiles of BF16 numbers: scores of queries with keys,
// and weighted sums of values.
//
// A query's coordinate is exactly the sum of three BF16 numbers, its pieces; two represent it to 2^-18, and a
// BF16 query is one. A weight, whose error nothing amplifies, has two pieces, 2^-17, or one if it was
// rounded. Keys and values are BF16 rows of a cache, or 4-bit codes whose levels are two numbers each
// (packed/amx_bf16_q4.h). Every piece of a query is a separate column of the product of keys and queries, and
// every piece of a weight has separate rows of the sums, so even few queries fill a tile. The result of a
// piece depends only on it and on its row of the cache: tiling never changes a bit.
//
// AMX multiplies pairs of numbers. Pairs of keys are neighbouring coordinates, but pairs of values would be
// neighbouring rows, which are not contiguous. So the pairs are neighbouring columns instead, and each weight
// appears twice: followed by a zero for the even columns, and preceded by one for the odd columns. This takes
// twice the products, but no rearranging.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/attention/prefetch_rows.h"
#include "backend/cpu/runtime/isa.h"

namespace sluice::backend::cpu::attention::bf16 {

using Half = std::uint16_t;  // the bits of a BF16 number

constexpr std::size_t kKeyRows = 32;     // rows of a cache that are scored together
constexpr std::size_t kValueRows = 128;  // maximum number of rows that are weighted together
constexpr std::size_t kStep = 32;        // coordinates per tile product
constexpr std::size_t kValueStep = 16;   // rows of values per tile product
constexpr std::size_t kStrip = 64;       // widths of values are multiples of it

// Whether this processor has AMX and the system lets this process use it.
bool available(Isa isa);

constexpr std::size_t whole_tiles(std::size_t count) {
  return (count + 15) / 16;
}

// The columns of some queries: those of the first two pieces, or of the only one, then those of the third,
// each padded to whole tiles. So products with the small parts of keys, which third pieces do not need, are
// products of whole tiles.
struct Columns {
  std::size_t queries;
  std::size_t pieces = 3;  // or fewer
  constexpr std::size_t first() const { return 16 * whole_tiles((pieces == 1 ? 1 : 2) * queries); }
  constexpr std::size_t all() const { return first() + (pieces == 3 ? 16 * whole_tiles(queries) : 0); }
};

// Rows of tiles for the weights of some queries: for every query its pieces, and for every piece one row for
// even columns and one for odd columns.
constexpr std::size_t weight_rows(std::size_t queries, std::size_t pieces) {
  return 16 * whole_tiles(2 * pieces * queries);
}

// kValueStep rows of values.
struct ValueStep {
  const Half* rows;
  std::size_t row_bytes;  // bytes between rows
};
// Steps `begin` to `end`, with rows of some width.
struct ValueSteps {
  const ValueStep* steps;
  std::size_t begin;
  std::size_t end;
  std::size_t width;
};

struct KeyBlock {
  const Half* rows;     // kKeyRows of them
  std::int64_t stride;  // bytes between rows
  std::size_t width;
};

// data[q * stride + j] is the weight of row j for query q, to be represented by some BF16 numbers.
struct QueryWeights {
  const float* data;
  std::size_t stride;
  std::size_t queries;
  std::size_t pieces;
};

// Memory of one worker for a maximum number of queries.
struct Workspace {
  struct Sizes {
    Columns columns;
    std::size_t key_width;  // all pieces of keys together
    std::size_t value_width;
  };
  static std::size_t bytes(const Sizes& sizes);
  Workspace() = default;
  Workspace(const Sizes& sizes, std::byte* at);
  // The queries and sums of this one with the rest of another.
  Workspace beside(const Workspace& other) const;

  Half* queries = nullptr;   // tiles
  Half* prepared = nullptr;  // keys or values that cannot be read directly
  Half* weights = nullptr;   // tiles
  float* dots = nullptr;     // [kKeyRows][columns.all()]
  float* sums = nullptr;     // [weight_rows][value_width / 2]; of codes [2 * queries, in tiles][value_width]
  float* spare = nullptr;    // sums of one query
  Half* pieces = nullptr;    // of queries, before they are packed into tiles
};

// The packed tiles have columns.all() * width halves.
void pack_queries(const float* queries, std::size_t stride, const Columns& columns, std::size_t width,
                  Half* pieces, Half* tiles);

// dots (+)= the keys times the queries.
void multiply_keys(const KeyBlock& keys, const Half* queries, const Columns& columns, bool add,
                   AttendAhead& ahead, float* dots);
// scores[q * stride + j] from dots.
void store_scores(const float* dots, const Columns& columns, float* scores, std::size_t stride);

// Packs the weights of rows kValueStep * [begin, end) as tiles.
void pack_weights(const QueryWeights& weights, std::size_t begin, std::size_t end, Half* tiles);
// sums += `rows` rows of packed weights times the values.
void add_values(const ValueSteps& values, const Half* weights, std::size_t rows, AttendAhead& ahead,
                float* sums);
// to[q * width + i] = the sums of a query's pieces, in the order of the columns.
void add_sums(const float* sums, std::size_t count, std::size_t pieces, std::size_t width, float* to);

// Configures the tiles of a worker for its task if they are used.
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
