// Selecting the largest values of a row with one warp: keys are unsigned integers in the order of the values,
// lane l owns entries l, l+32, ..., and 0 marks an entry that is excluded or already taken.
#pragma once

#include "backend/cuda/device/warp.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::routing {

using Key32 = unsigned;
using Key64 = unsigned long long;

// Never 0 unless x is NaN. Both zeros have the same key.
__device__ __forceinline__ Key32 key_of(float x) {
  const unsigned bits = __float_as_uint(x == 0 ? 0.0f : x);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}
__device__ __forceinline__ Key64 key_of(double x) {
  const auto bits = static_cast<Key64>(__double_as_longlong(x == 0 ? 0.0 : x));
  return bits >> 63 != 0 ? ~bits : bits | 0x8000000000000000ull;
}
__device__ __forceinline__ float value_of(Key32 key) {
  return __uint_as_float(key >> 31 != 0 ? key & 0x7fffffffu : ~key);
}

__device__ __forceinline__ Key32 warp_max_key(Key32 key) {
  return __reduce_max_sync(0xffffffffu, key);
}
__device__ __forceinline__ Key64 warp_max_key(Key64 key) {
  const auto high = static_cast<unsigned>(key >> 32);
  const unsigned best_high = __reduce_max_sync(0xffffffffu, high);
  const unsigned low = high == best_high ? static_cast<unsigned>(key) : 0u;
  return static_cast<Key64>(best_high) << 32 | __reduce_max_sync(0xffffffffu, low);
}

template <class Key>
struct Choice {
  Key key;
  int index;
};

// Takes the entries of a row one by one in descending order; among equal ones, the lower index first.
template <class Key>
class Chooser {
 public:
  // The lane's own entries must have been written.
  __device__ Chooser(Key* keys, int count) : keys_(keys), count_(count), lane_(threadIdx.x % kWarp) {
    find_best();
  }
  // To be called by the whole warp; every lane gets the same result.
  __device__ Choice<Key> take() {
    const Key key = warp_max_key(best_.key);
    const unsigned mine = best_.key == key ? static_cast<unsigned>(best_.index) : 0xffffffffu;
    const auto index = static_cast<int>(__reduce_min_sync(0xffffffffu, mine));
    if (index == best_.index) {
      keys_[index] = 0;
      find_best();
    }
    return {key, index};
  }

 private:
  __device__ void find_best() {
    best_ = {0, lane_};
    for (int i = lane_; i < count_; i += kWarp)
      if (keys_[i] > best_.key) best_ = {keys_[i], i};
  }

  Key* keys_;
  int count_;
  int lane_;
  Choice<Key> best_;
};

// The same, with the lane's entries l, l+32, ... in registers.
template <class Key, int kHeld>
class HeldChooser {
 public:
  __device__ __forceinline__ explicit HeldChooser(const Key (&keys)[kHeld]) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) keys_[i] = keys[i];
  }
  __device__ __forceinline__ Choice<Key> take() {
    Choice<Key> best{0, 0};
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if (keys_[i] > best.key) best = {keys_[i], i};
    const Key key = warp_max_key(best.key);
    const int mine = best.index * kWarp + to_int(threadIdx.x) % kWarp;
    const auto index = static_cast<int>(
        __reduce_min_sync(0xffffffffu, best.key == key ? static_cast<unsigned>(mine) : 0xffffffffu));
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if (index == mine && best.index == i) keys_[i] = 0;
    return {key, index};
  }

 private:
  Key keys_[kHeld];
};

}  // namespace sluice::backend::cuda::routing
