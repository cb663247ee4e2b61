// The interface of attention's products over BF16 rows, for the loop over a cache (bf16_tile-inl.h),
// implemented with AMX (amx_bf16.h) or vectors (avx512_bf16.h).
#pragma once

#include "backend/cpu/attention/amx_bf16.h"

namespace sluice::backend::cpu::attention {

class AttendProducts {
 public:
  using Half = bf16::Half;
  using Columns = bf16::Columns;
  using KeyBlock = bf16::KeyBlock;
  using QueryWeights = bf16::QueryWeights;
  using ValueSteps = bf16::ValueSteps;

  virtual ~AttendProducts() = default;

  // The best this processor has, or null.
  static const AttendProducts* best(Isa isa);

  // Whether a worker needs a bf16::Session.
  virtual bool uses_tiles() const { return false; }

  // The packed queries have at most columns.all() * width halves.
  virtual void pack_queries(const float* queries, std::size_t stride, const Columns& columns,
                            std::size_t width, Half* pieces, Half* packed) const = 0;
  // dots (+)= the keys times the queries.
  virtual void multiply_keys(const KeyBlock& keys, const Half* queries, const Columns& columns, bool add,
                             AttendAhead& ahead, float* dots) const = 0;
  // scores[q * stride + j] from dots.
  virtual void store_scores(const float* dots, const Columns& columns, float* scores,
                            std::size_t stride) const = 0;

  // Floats in the sums of one query, which are contiguous, and in all sums.
  virtual std::size_t query_sums(std::size_t pieces, std::size_t width) const = 0;
  virtual std::size_t all_sums(std::size_t queries, std::size_t pieces, std::size_t width) const = 0;
  // sums += weights times values. `packed` has room for the weights.
  virtual void add_values(const ValueSteps& values, const QueryWeights& weights, Half* packed,
                          AttendAhead& ahead, float* sums) const = 0;
  // to[q * width + i] = the sums of a query, in the order of the columns.
  virtual void add_sums(const float* sums, std::size_t queries, std::size_t pieces, std::size_t width,
                        float* to) const = 0;
};

}  // namespace sluice::backend::cpu::attention
