// A_ij = beta_i (k_i . k_j) e^(g_i - g_j) for i > j within a chunk, 0 elsewhere. Threaded over (batch, chunk,
// head); a task holds its chunk of keys as F32, padded with zeros to whole vectors, and computes four columns
// at a time. Bytes: k once per head and A once; 2 K flops for each of C(C-1)/2 elements.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/delta/delta_kkt.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <hwy/contrib/math/math-inl.h>

#include <algorithm>

#include "backend/cpu/runtime/address.h"
#include "backend/cpu/runtime/context.h"
#include "backend/cpu/simd/lane_sums-inl.h"
#include "base/integer_cast.h"
#include "sluice/ops/delta/delta_kkt.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::delta::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;

// One chunk of one head. Columns are padded to whole vectors, which are also whole groups of four.
class KktChunk {
 public:
  static std::size_t padded(std::int64_t n) { return hwy::RoundUpTo(to_size(n), hn::Lanes(FloatTag())); }
  static std::size_t floats(const ops::DeltaKkt& op, std::int64_t rows) {
    return (padded(rows) + 1) * padded(op.k.dim(3)) + 2 * padded(rows);
  }

  KktChunk(const ops::DeltaKkt& op, std::int64_t max_rows, float* scratch)
      : op_(op),
        width_(to_size(op.k.dim(3))),
        stride_(padded(op.k.dim(3))),
        keys_(scratch),
        scaled_(keys_ + padded(max_rows) * stride_),
        g_(scaled_ + stride_),
        dots_(g_ + padded(max_rows)) {}

  void run(std::int64_t batch, std::int64_t first, std::int64_t rows, std::int64_t head) {
    load(batch, first, rows, head);
    for (std::int64_t i = 0; i < rows; ++i) {
      const float beta = *static_cast<const float*>(address(op_.beta, batch, first + i, head));
      scale_key(i, beta);
      const std::size_t columns = i;
      for (std::size_t j = 0; j < columns; j += 4) dot_four(j);
      apply_decay(columns);
      auto* out = static_cast<float*>(address(op_.A, batch, first + i, head));
      std::copy_n(dots_, columns, out);
      std::fill(out + columns, out + op_.chunk, 0.0f);
    }
  }

 private:
  float* key(std::size_t row) const { return keys_ + row * stride_; }

  void load(std::int64_t batch, std::int64_t first, std::int64_t rows, std::int64_t head) {
    const std::int64_t key_head = head / (op_.beta.dim(2) / op_.k.dim(2));
    const std::size_t all_rows = padded(rows);
    for (std::size_t r = 0; r < all_rows; ++r) {
      const std::int64_t row = r;
      const bool present = row < rows;
      if (present) load_row(address(op_.k, batch, first + row, key_head), op_.k.dtype, width_, key(r));
      std::fill(key(r) + (present ? width_ : 0), key(r) + stride_, 0.0f);
      g_[r] = present ? *static_cast<const float*>(address(op_.g, batch, first + row, head)) : 0.0f;
    }
  }

  // k_i beta_i, rounded to BF16 if the keys are BF16.
  void scale_key(std::int64_t i, float beta) {
    const FloatTag d;
    row_g_ = g_[i];
    for (std::size_t c = 0; c < stride_; c += hn::Lanes(d)) {
      const auto product = hn::Mul(hn::LoadU(d, key(to_size(i)) + c), hn::Set(d, beta));
      if (op_.k.dtype == ops::DType::f32) {
        hn::StoreU(product, d, scaled_ + c);
        continue;
      }
      ops::BFloat16 rounded[hn::MaxLanes(FloatTag())];
      store(d, product, rounded);
      hn::StoreU(simd::HWY_NAMESPACE::load(d, rounded), d, scaled_ + c);
    }
  }

  void dot_four(std::size_t j) {
    const FloatTag d;
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    for (std::size_t c = 0; c < stride_; c += hn::Lanes(d)) {
      const auto x = hn::LoadU(d, scaled_ + c);
      s0 = hn::MulAdd(x, hn::LoadU(d, key(j) + c), s0);
      s1 = hn::MulAdd(x, hn::LoadU(d, key(j + 1) + c), s1);
      s2 = hn::MulAdd(x, hn::LoadU(d, key(j + 2) + c), s2);
      s3 = hn::MulAdd(x, hn::LoadU(d, key(j + 3) + c), s3);
    }
    hn::StoreU(sum_lanes(d, s0, s1, s2, s3), hn::Full128<float>(), dots_ + j);
  }

  // dots *= e^(g_i - g_j); equal sums, even -inf, mean that there was no decay in between.
  void apply_decay(std::size_t columns) {
    const FloatTag d;
    const auto g_i = hn::Set(d, row_g_);
    for (std::size_t j = 0; j < columns; j += hn::Lanes(d)) {
      const auto g_j = hn::LoadU(d, g_ + j);
      const auto difference = hn::Sub(g_i, g_j);
      const auto bounded = hn::IfThenElseZero(hn::Ne(g_i, g_j), hn::Min(difference, hn::Set(d, 100.0f)));
      // The bound would hide a NaN.
      const auto decay = hn::IfThenElse(hn::IsNaN(hn::Add(g_i, g_j)), difference, hn::Exp(d, bounded));
      hn::StoreU(hn::Mul(hn::LoadU(d, dots_ + j), decay), d, dots_ + j);
    }
  }

  const ops::DeltaKkt& op_;
  const std::size_t width_;
  const std::size_t stride_;
  float* const keys_;
  float* const scaled_;
  float* const g_;
  float* const dots_;
  float row_g_ = 0;
};

void delta_kkt(Context& context, const ops::DeltaKkt& op) {
  const std::int64_t tokens = op.k.dim(1);
  const std::int64_t heads = op.beta.dim(2);
  const std::int64_t chunk = std::min(op.chunk, tokens);
  const std::int64_t chunks = (tokens + chunk - 1) / chunk;
  const std::size_t bytes = KktChunk::floats(op, chunk) * sizeof(float);
  context.pool().parallel_for_dynamic(
      0, op.k.dim(0) * chunks * heads, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
        KktChunk task(op, chunk, reinterpret_cast<float*>(context.worker_scratch(worker, bytes)));
        for (std::int64_t item = begin; item < end; ++item) {
          const std::int64_t first = item / heads % chunks * chunk;
          task.run(item / heads / chunks, first, std::min(chunk, tokens - first), item % heads);
        }
      });
}

}  // namespace sluice::backend::cpu::delta::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu::delta {

HWY_EXPORT(delta_kkt);

}  // namespace sluice::backend::cpu::delta

namespace sluice::backend::cpu {

using namespace delta;

template <>
void run(Context& context, const ops::DeltaKkt& op) {
  SLUICE_DISPATCH(context, delta_kkt)(context, op);
}

}  // namespace sluice::backend::cpu
#endif
