// Rotary positions. The angle and its reduction to one turn are in double, and only the remainder is rounded
// to float, so cos and sin are accurate to 1e-6 at any position.
#pragma once

namespace sluice::backend::cuda::pointwise {

// (cos, sin) of position * frequency, times mscale.
__device__ __forceinline__ float2 rotation(int position, float frequency, float mscale) {
  constexpr double kTurnsPerRadian = 0.15915494309189533577;
  // An explicit multiplication, which the compiler cannot fuse: all kernels get the same bits.
  const double turns =
      __dmul_rn(static_cast<double>(position) * static_cast<double>(frequency), kTurnsPerRadian);
  const auto half_turns = static_cast<float>(2 * (turns - rint(turns)));
  float2 result;
  sincospif(half_turns, &result.y, &result.x);
  result.x *= mscale;
  result.y *= mscale;
  return result;
}

__device__ __forceinline__ void rotate(float& a, float& b, float2 by) {
  const float turned = a * by.x - b * by.y;
  b = b * by.x + a * by.y;
  a = turned;
}

}  // namespace sluice::backend::cuda::pointwise
