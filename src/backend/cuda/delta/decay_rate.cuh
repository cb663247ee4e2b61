// The decay rate of a state of the gated delta rule.
#pragma once

namespace sluice::backend::cuda::delta {

// exp(a_log) * softplus(x), where either factor alone may overflow or underflow: for very negative x softplus
// is e^x, and the exponents are added; otherwise exp(a_log) is applied in two factors. Comparisons instead of
// fminf, so that NaN is propagated.
__device__ __forceinline__ float decay_rate(float a_log, float x) {
  const float limit = 80.0f;
  const bool far_below = x < -15.0f;
  const float exponent = far_below ? a_log + x : a_log;
  const float factor = far_below ? 1.0f : fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x)));
  const float first = exponent > limit ? limit : exponent;
  const float rest = exponent > limit ? exponent - limit : 0.0f;
  return factor * expf(first) * expf(rest);
}

}  // namespace sluice::backend::cuda::delta
