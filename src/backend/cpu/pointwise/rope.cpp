// Rotates the first R = 2*M channels of every head, in place: pair i by the angle positions[t] * inv_freq[i].
// Threaded over tokens; all heads of a token share its M cosines and sines. The product is computed and
// reduced to one turn in double, where it is exact up to position 2^29, and only the remainder is rounded to
// float, so cos and sin are accurate to 5e-7 at any position.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/pointwise/rope.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <hwy/contrib/math/math-inl.h>

#include <cmath>
#include <numbers>

#include "backend/cpu/runtime/context.h"
#include "backend/cpu/simd/rows-inl.h"
#include "base/integer_cast.h"
#include "sluice/ops/pointwise/rope.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::pointwise::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;

// angles[i] = position * inv_freq[i] modulo one turn, in [-pi, pi].
HWY_INLINE void reduced_angles(std::int32_t position, const float* inv_freq, std::size_t count,
                               float* angles) {
  constexpr double kTurn = 2 * std::numbers::pi;
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, decltype(dd)> df;
  const auto p = hn::Set(dd, to_double(position));
  std::size_t i = 0;
  for (; i + hn::Lanes(dd) <= count; i += hn::Lanes(dd)) {
    const auto angle = hn::Mul(p, hn::PromoteTo(dd, hn::LoadU(df, inv_freq + i)));
    const auto turns = hn::Mul(angle, hn::Set(dd, 1 / kTurn));
    const auto part = hn::Sub(turns, hn::Round(turns));
    hn::StoreU(hn::DemoteTo(df, hn::Mul(part, hn::Set(dd, kTurn))), df, angles + i);
  }
  for (; i < count; ++i) {
    const double turns = to_double(position) * static_cast<double>(inv_freq[i]) * (1 / kTurn);
    angles[i] = static_cast<float>((turns - std::nearbyint(turns)) * kTurn);
  }
}

// The factors for one token's heads, in the order in which channels are processed. half: M cosines, then M
// sines. interleaved: R cosines, each twice, then R sines, each as -s, s. All arrays are padded to whole
// vectors.
struct Rotation {
  float* cosines;
  float* sines;
  float* angles;

  Rotation(std::byte* scratch, std::size_t channels)
      : cosines(reinterpret_cast<float*>(scratch)), sines(cosines + channels), angles(sines + channels) {}
  static std::size_t padded(std::size_t channels) { return (channels + 15) / 16 * 16; }

  void set(std::int32_t position, const float* inv_freq, std::size_t pairs, double mscale, bool half) {
    const FloatTag d;
    reduced_angles(position, inv_freq, pairs, angles);
    for (std::size_t i = pairs; i < padded(pairs); ++i) angles[i] = 0;
    const auto scale = hn::Set(d, static_cast<float>(mscale));
    for (std::size_t i = 0; i < pairs; i += hn::Lanes(d)) {
      const auto angle = hn::LoadU(d, angles + i);
      const auto c = hn::Mul(hn::Cos(d, angle), scale);
      const auto s = hn::Mul(hn::Sin(d, angle), scale);
      if (half) {
        hn::StoreU(c, d, cosines + i);
        hn::StoreU(s, d, sines + i);
      } else {
        hn::StoreInterleaved2(c, c, d, cosines + 2 * i);
        hn::StoreInterleaved2(hn::Neg(s), s, d, sines + 2 * i);
      }
    }
  }
};

template <class T>
HWY_INLINE void rotate_half(T* x, std::size_t pairs, const Rotation& rotation) {
  const FloatTag d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= pairs; i += hn::Lanes(d)) {
    const auto a = load(d, x + i);
    const auto b = load(d, x + pairs + i);
    const auto c = hn::LoadU(d, rotation.cosines + i);
    const auto s = hn::LoadU(d, rotation.sines + i);
    store(d, hn::NegMulAdd(b, s, hn::Mul(a, c)), x + i);
    store(d, hn::MulAdd(a, s, hn::Mul(b, c)), x + pairs + i);
  }
  for (; i < pairs; ++i) {
    const float a = ops::to_float(x[i]);
    const float b = ops::to_float(x[pairs + i]);
    store_scalar(a * rotation.cosines[i] - b * rotation.sines[i], x + i);
    store_scalar(b * rotation.cosines[i] + a * rotation.sines[i], x + pairs + i);
  }
}

template <class T>
HWY_INLINE void rotate_interleaved(T* x, std::size_t pairs, const Rotation& rotation) {
  const FloatTag d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= 2 * pairs; i += hn::Lanes(d)) {
    const auto value = load(d, x + i);
    const auto turned = hn::Mul(hn::Reverse2(d, value), hn::LoadU(d, rotation.sines + i));
    store(d, hn::MulAdd(value, hn::LoadU(d, rotation.cosines + i), turned), x + i);
  }
  for (; i < 2 * pairs; i += 2) {
    const float a = ops::to_float(x[i]);
    const float b = ops::to_float(x[i + 1]);
    store_scalar(a * rotation.cosines[i] + b * rotation.sines[i], x + i);
    store_scalar(b * rotation.cosines[i + 1] + a * rotation.sines[i + 1], x + i + 1);
  }
}

template <class T>
void rope_tokens(Context& context, const ops::Rope& op) {
  const bool half = op.pairing == ops::Pairing::half;
  const std::size_t pairs = op.inv_freq.dim(0);
  const std::int64_t heads = op.x.dim(1);
  const auto* inv_freq = static_cast<const float*>(op.inv_freq.data);
  const auto* positions = static_cast<const std::int32_t*>(op.positions.data);
  const std::size_t channels = 2 * Rotation::padded(pairs);
  const std::int64_t grain = 1 + 16384 / (heads * static_cast<std::int64_t>(channels));
  context.pool().parallel_for(
      0, op.x.dim(0), grain, [&](std::int64_t begin, std::int64_t end, int worker) HWY_ATTR {
        Rotation rotation(context.worker_scratch(worker, 3 * channels * sizeof(float)), channels);
        for (std::int64_t t = begin; t < end; ++t) {
          rotation.set(positions[t], inv_freq, pairs, op.mscale, half);
          for (std::int64_t h = 0; h < heads; ++h) {
            auto* x = static_cast<T*>(op.x.data) + t * op.x.strides[0] + h * op.x.strides[1];
            if (half)
              rotate_half(x, pairs, rotation);
            else
              rotate_interleaved(x, pairs, rotation);
          }
        }
      });
}

void rope(Context& context, const ops::Rope& op) {
  if (op.x.dtype == ops::DType::f32)
    rope_tokens<float>(context, op);
  else
    rope_tokens<ops::BFloat16>(context, op);
}

}  // namespace sluice::backend::cpu::pointwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu::pointwise {

HWY_EXPORT(rope);

}  // namespace sluice::backend::cpu::pointwise

namespace sluice::backend::cpu {

using namespace pointwise;

template <>
void run(Context& context, const ops::Rope& op) {
  SLUICE_DISPATCH(context, rope)(context, op);
}

}  // namespace sluice::backend::cpu
#endif
