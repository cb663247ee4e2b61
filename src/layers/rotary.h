// The frequency table of rotary embeddings: plain, or stretched by YaRN.
#pragma once

#include <vector>

#include "checkpoint/config.h"
#include "sluice/ops/pointwise/rope.h"

namespace sluice::layers {

struct RotaryTable {
  std::vector<float> inv_freq;  // [R/2]
  double mscale = 1;            // factor on cos and sin
  double score_scale = 1;       // DeepSeek's factor on the softmax scale, already squared

  ops::ConstView placed;  // the copy in a device's memory, if there is one

  ops::ConstView view() const {
    if (placed.present()) return placed;
    return {inv_freq.data(), ops::DType::f32, {std::ssize(inv_freq)}};
  }
};

// Reads rope_parameters, or rope_theta with rope_scaling; throws, by name, for unknown kinds and if
// the two contradict each other. `default_partial` is the rotated part of a head if the file does not
// say.
RotaryTable read_rotary(const checkpoint::Config& config, std::int64_t head_dim, double default_partial);

}  // namespace sluice::layers
