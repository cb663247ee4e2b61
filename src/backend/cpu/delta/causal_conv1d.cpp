// out[t] = silu(sum_j virtual[t+j] * weight[:,j]), where `virtual` is the W-1 rows of the state followed by
// x; the state then holds the last W-1 rows. Threaded over blocks of channels (and sequences): a block keeps
// the last W rows in a ring buffer in L1, so x is read and converted once, and the ring ends up with the new
// state however short the call is. Taps are added in the order j = 0..W-1. Bytes: x and out once, weight and
// state twice.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/delta/causal_conv1d.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <algorithm>

#include "backend/cpu/runtime/address.h"
#include "backend/cpu/runtime/context.h"
#include "backend/cpu/runtime/parameter.h"
#include "backend/cpu/simd/activation-inl.h"
#include "base/integer_cast.h"
#include "ops/saves.h"
#include "sluice/ops/delta/causal_conv1d.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::delta::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;

constexpr std::size_t kChannelBlock = 512;   // a multiple of every vector length
constexpr std::int64_t kInputRowsAhead = 4;  // rows are pages apart, which hardware prefetchers do not handle

// One block of channels: its taps transposed to [W, kChannelBlock], the ring buffer of rows and one output
// row.
class ConvBlock {
 public:
  static std::size_t floats(std::size_t width) { return (2 * width + 1) * kChannelBlock; }

  ConvBlock(const ops::CausalConv1d& op, float* scratch)
      : op_(op),
        width_(to_size(op.weight.dim(1))),
        taps_(scratch),
        ring_(taps_ + width_ * kChannelBlock),
        sum_(ring_ + width_ * kChannelBlock) {}

  void select(std::int64_t block) {
    if (block == block_) return;
    block_ = block;
    first_ = block * static_cast<std::int64_t>(kChannelBlock);
    count_ = to_size(std::min(op_.x.dim(1) - first_, static_cast<std::int64_t>(kChannelBlock)));
    load_taps();
  }

  void run(const ops::Sequence& sequence, const ops::View& state) {
    for (std::size_t r = 0; r + 1 < width_; ++r)
      load_row(address(state, r, first_), op_.state.dtype, count_, ring_row(r));
    for (std::int64_t t = 0; t < sequence.tokens(); ++t) {
      const std::size_t newest = to_size(t) + width_ - 1;
      if (t + kInputRowsAhead < sequence.tokens()) prefetch_row(sequence.begin + t + kInputRowsAhead);
      load_row(address(op_.x, sequence.begin + t, first_), op_.x.dtype, count_, ring_row(newest));
      convolve(to_size(t));
      store_row(sum_, count_, address(op_.out, sequence.begin + t, first_), op_.out.dtype);
      if ((t + 1) % kSaveStep == 0) save({sequence.begin + t, sequence.begin + t + 1, 0}, t + 1);
    }
    store_state(state, sequence.tokens());
  }

 private:
  static constexpr std::int64_t kSaveStep = 64;  // tokens between positions at which states may be saved

  // Stores the rows that the next token would use after `tokens` tokens of a sequence.
  void store_state(const ops::View& state, std::int64_t tokens) {
    for (std::size_t r = 0; r + 1 < width_; ++r)
      store_row(ring_row(to_size(tokens) + r), count_, address(state, r, first_), op_.state.dtype);
  }
  void save(const ops::Sequence& token, std::int64_t tokens) {
    ops::Saves(op_).for_each(token, [&](std::int64_t i, std::int64_t) { store_state(op_.saved[i], tokens); });
  }

  float* ring_row(std::size_t virtual_row) { return ring_ + virtual_row % width_ * kChannelBlock; }

  void prefetch_row(std::int64_t t) const {
    const auto* row = static_cast<const std::byte*>(address(op_.x, t, first_));
    for (std::size_t at = 0; at < count_ * size_bytes(op_.x.dtype); at += 64) hwy::Prefetch(row + at);
  }

  void load_taps() {
    if (width_ == 4 && op_.weight.strides[0] == 4 && count_ == kChannelBlock &&
        op_.weight.dtype != ops::DType::f16 && aligned(op_.weight)) {
      if (op_.weight.dtype == ops::DType::f32)
        load_four_taps(static_cast<const float*>(address(op_.weight, first_)));
      else
        load_four_taps(static_cast<const ops::BFloat16*>(address(op_.weight, first_)));
      return;
    }
    for (std::size_t c = 0; c < count_; ++c) {
      const ops::ConstView taps = op_.weight[first_ + static_cast<std::int64_t>(c)];
      for (std::size_t j = 0; j < width_; ++j)
        taps_[j * kChannelBlock + c] = read_parameter(taps, static_cast<std::int64_t>(j));
    }
  }

  void store_taps(std::size_t c, FloatVec a, FloatVec b, FloatVec e, FloatVec f) {
    const FloatTag d;
    hn::StoreU(a, d, taps_ + c);
    hn::StoreU(b, d, taps_ + kChannelBlock + c);
    hn::StoreU(e, d, taps_ + 2 * kChannelBlock + c);
    hn::StoreU(f, d, taps_ + 3 * kChannelBlock + c);
  }

  void load_four_taps(const float* weight) {
    const FloatTag d;
    for (std::size_t c = 0; c < kChannelBlock; c += hn::Lanes(d)) {
      FloatVec tap0, tap1, tap2, tap3;
      hn::LoadInterleaved4(d, weight + 4 * c, tap0, tap1, tap2, tap3);
      store_taps(c, tap0, tap1, tap2, tap3);
    }
  }

  void load_four_taps(const ops::BFloat16* weight) {
    const FloatTag d;
    const hn::RebindToUnsigned<FloatTag> du;
    const hn::Rebind<std::uint16_t, FloatTag> du16;
    const auto widen = [&](auto bits)
                           HWY_ATTR { return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, bits))); };
    for (std::size_t c = 0; c < kChannelBlock; c += hn::Lanes(d)) {
      hn::Vec<decltype(du16)> tap0, tap1, tap2, tap3;
      hn::LoadInterleaved4(du16, reinterpret_cast<const std::uint16_t*>(weight) + 4 * c, tap0, tap1, tap2,
                           tap3);
      store_taps(c, widen(tap0), widen(tap1), widen(tap2), widen(tap3));
    }
  }

  // sum_ = silu of the taps over virtual rows t..t+W-1; lanes past the last channel are never stored.
  void convolve(std::size_t t) {
    const FloatTag d;
    std::fill_n(sum_, kChannelBlock, 0.0f);
    std::size_t j = 0;
    for (; j + 4 <= width_; j += 4) add_taps<4>(t, j);
    for (; j < width_; ++j) add_taps<1>(t, j);
    for (std::size_t c = 0; c < count_; c += hn::Lanes(d))
      hn::StoreU(silu(d, hn::LoadU(d, sum_ + c)), d, sum_ + c);
  }

  // Adds taps j..j+kTaps-1 to sum_.
  template <std::size_t kTaps>
  void add_taps(std::size_t t, std::size_t j) {
    const FloatTag d;
    const float* rows[kTaps];
    for (std::size_t i = 0; i < kTaps; ++i) rows[i] = ring_row(t + j + i);
    const float* taps = taps_ + j * kChannelBlock;
    for (std::size_t c = 0; c < count_; c += hn::Lanes(d)) {
      auto sum = hn::LoadU(d, sum_ + c);
      for (std::size_t i = 0; i < kTaps; ++i)
        sum = hn::MulAdd(hn::LoadU(d, rows[i] + c), hn::LoadU(d, taps + i * kChannelBlock + c), sum);
      hn::StoreU(sum, d, sum_ + c);
    }
  }

  const ops::CausalConv1d& op_;
  const std::size_t width_;
  float* const taps_;
  float* const ring_;
  float* const sum_;
  std::int64_t block_ = -1;
  std::int64_t first_ = 0;
  std::size_t count_ = 0;
};

void causal_conv1d(Context& context, const ops::CausalConv1d& op) {
  const ops::Sequences sequences(op, op.x.dim(0));
  const std::int64_t blocks =
      (op.x.dim(1) + static_cast<std::int64_t>(kChannelBlock) - 1) / static_cast<std::int64_t>(kChannelBlock);
  const std::size_t bytes = ConvBlock::floats(to_size(op.weight.dim(1))) * sizeof(float);
  context.pool().parallel_for(
      0, blocks * sequences.count(), 1, [&](std::int64_t begin, std::int64_t end, int worker) {
        ConvBlock block(op, reinterpret_cast<float*>(context.worker_scratch(worker, bytes)));
        for (std::int64_t item = begin; item < end; ++item) {
          block.select(item / sequences.count());
          const ops::Sequence sequence = sequences[item % sequences.count()];
          if (sequence.tokens() > 0) block.run(sequence, sequences.part(op.state, sequence));
        }
      });
}

}  // namespace sluice::backend::cpu::delta::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu::delta {

HWY_EXPORT(causal_conv1d);

}  // namespace sluice::backend::cpu::delta

namespace sluice::backend::cpu {

using namespace delta;

template <>
void run(Context& context, const ops::CausalConv1d& op) {
  SLUICE_DISPATCH(context, causal_conv1d)(context, op);
}

}  // namespace sluice::backend::cpu
#endif
