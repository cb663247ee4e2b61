#include "backend/cpu/attention/bf16_products.h"

#include "backend/cpu/attention/avx512_bf16.h"

namespace sluice::backend::cpu::attention {

namespace {

class TileProducts final : public AttendProducts {
 public:
  bool uses_tiles() const override { return true; }
  void pack_queries(const float* queries, std::size_t stride, const Columns& columns, std::size_t width,
                    Half* pieces, Half* packed) const override {
    bf16::pack_queries(queries, stride, columns, width, pieces, packed);
  }
  void multiply_keys(const KeyBlock& keys, const Half* queries, const Columns& columns, bool add,
                     AttendAhead& ahead, float* dots) const override {
    bf16::multiply_keys(keys, queries, columns, add, ahead, dots);
  }
  void store_scores(const float* dots, const Columns& columns, float* scores,
                    std::size_t stride) const override {
    bf16::store_scores(dots, columns, scores, stride);
  }
  std::size_t query_sums(std::size_t pieces, std::size_t width) const override { return pieces * width; }
  std::size_t all_sums(std::size_t queries, std::size_t pieces, std::size_t width) const override {
    return bf16::weight_rows(queries, pieces) * width / 2;
  }
  void add_values(const ValueSteps& values, const QueryWeights& weights, Half* packed, AttendAhead& ahead,
                  float* sums) const override {
    bf16::pack_weights(weights, values.begin, values.end, packed);
    bf16::add_values(values, packed, bf16::weight_rows(weights.queries, weights.pieces), ahead, sums);
  }
  void add_sums(const float* sums, std::size_t queries, std::size_t pieces, std::size_t width,
                float* to) const override {
    bf16::add_sums(sums, queries, pieces, width, to);
  }
};

}  // namespace

const AttendProducts* AttendProducts::best(Isa isa) {
  static const TileProducts tiles;
  return bf16::available(isa) ? &tiles : attend_pairs(isa);
}

}  // namespace sluice::backend::cpu::attention
