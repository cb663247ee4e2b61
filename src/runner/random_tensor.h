// Random tensors for cases, the same on every machine.
#pragma once

#include "runner/op_file.h"
#include "sluice/ops/weight.h"

namespace sluice::runner {

// SplitMix64 with a Box-Muller normal distribution: small, seedable, and stable across standard libraries.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits();
  double uniform();  // [0, 1)
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  double normal();
  std::int64_t integer(std::int64_t below) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(below));
  }

 private:
  std::uint64_t state_;
};

HostTensor normal(Random& random, ops::DType type, const ops::Shape& shape, double scale = 1,
                  double mean = 0);
HostTensor uniform(Random& random, ops::DType type, const ops::Shape& shape, double low, double high);
HostTensor constant(ops::DType type, const ops::Shape& shape, double value);
HostTensor integers(Random& random, const ops::Shape& shape, std::int64_t below);  // I32 in [0, below)
HostTensor indices(std::initializer_list<std::int32_t> values);                    // I32 [n]
HostTensor random_bytes(Random& random, ops::DType type,
                        const ops::Shape& shape);  // U8 or U32, every bit random
void set(HostTensor& tensor, std::int64_t i, double value);

// How a case stores a weight.
struct WeightFormat {
  bool quantized = false;
  ops::DType dtype = ops::DType::f32;       // of a dense weight, or of affine scales
  ops::DType bias_dtype = ops::DType::f32;  // of affine biases
  ops::QuantMode mode = ops::QuantMode::affine;
  int bits = 4;
  int group_size = 64;
};
std::string label(const WeightFormat& format);
// Adds weight `name` of logical shape [..,N,K] with values of about the given size; K must be a multiple of
// the group size.
void add_weight(OpFile& file, Random& random, const std::string& name, const ops::Shape& shape,
                const WeightFormat& format, double scale);

}  // namespace sluice::runner
