// Constants of a weight storage, shared by the decode kernel and its plan.
#pragma once

#include "backend/cuda/linear/linear.h"

namespace sluice::backend::cuda::linear::decode {

struct StorageShape {
  int bits = 0;
  bool dense = false;
  bool affine = false;
  // In a step, a lane has this many consecutive values of a row, in `words` words. Four lanes share a row.
  int lane_values = 0;
  int words = 0;
  int vector_words = 0;  // per load
  int step_values = 0;   // of K
  int kinds = 0;         // of scales: 0: none, 1: scales, 2: also biases

  constexpr explicit StorageShape(Storage storage)
      : bits(bits_of(storage)),
        dense(bits >= 16),
        affine(!dense && storage != Storage::fp4 && storage != Storage::fp8),
        lane_values(dense ? 256 / bits : 32),
        words(lane_values * bits / 32),
        vector_words(words % 4 == 0   ? 4
                     : words % 2 == 0 ? 2
                                      : 1),
        step_values(4 * lane_values),
        kinds(dense    ? 0
              : affine ? 2
                       : 1) {}

  // Steps that a warp prefetches: 4 KB in blocks with room for eight columns of results, half of it if inputs
  // need the shared memory.
  constexpr int depth(int blocks) const { return words > 4 ? 2 : (blocks == 1 ? 16 : 8) / words; }

 private:
  static constexpr int bits_of(Storage storage) {
    switch (storage) {
      case Storage::f32:
        return 32;
      case Storage::bf16:
      case Storage::f16:
        return 16;
      case Storage::affine2:
        return 2;
      case Storage::affine3:
        return 3;
      case Storage::affine5:
        return 5;
      case Storage::affine6:
        return 6;
      case Storage::affine8:
      case Storage::fp8:
        return 8;
      default:
        return 4;
    }
  }
};

}  // namespace sluice::backend::cuda::linear::decode
