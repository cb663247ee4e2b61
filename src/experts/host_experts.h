// Experts that the host computes while a device computes others of the same token.
#pragma once

#include <span>

#include "base/integer_cast.h"
#include "experts/expert.h"
#include "sluice/ops/backend.h"

namespace sluice::experts {

class HostExperts {
 public:
  // `cpu` computes in host memory; inputs and results have the type `activations`.
  HostExperts(ops::Backend& cpu, ops::DType activations);

  // out [experts,hidden] of one token's input [hidden].
  void compute(const std::byte* input, std::span<const Expert> experts, std::byte* out);

  // Estimated time for an expert of that many bytes, from recent passes.
  double seconds(std::size_t bytes) const { return seconds_per_byte_ * to_double(bytes); }

 private:
  ops::View floats(ops::Buffer& buffer, const ops::Shape& shape);

  ops::Backend& cpu_;
  ops::DType activations_;
  double seconds_per_byte_ = 1 / 50e9;  // until the first measurement
  ops::Buffer input_;
  ops::Buffer inner_;
  ops::Buffer results_;
  ops::Buffer numbers_;
};

}  // namespace sluice::experts
