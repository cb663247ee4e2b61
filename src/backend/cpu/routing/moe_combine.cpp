// out = residual + sum_j weights[j] * expert_out[j] + sigmoid(shared_gate) * shared_out, summed in this order
// in F32. Threaded over blocks of columns of tokens: a block is summed in cache, so every input is read once
// and the output is written once, and out may share an input's memory.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/routing/moe_combine.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <algorithm>
#include <cmath>

#include "backend/cpu/runtime/context.h"
#include "backend/cpu/runtime/parameter.h"
#include "backend/cpu/runtime/row_walk.h"
#include "backend/cpu/simd/accumulate-inl.h"
#include "base/integer_cast.h"
#include "sluice/ops/routing/moe_combine.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::routing::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;

constexpr std::int64_t kBlock = 512;  // columns per block: 2 KiB

HWY_INLINE float sigmoid(float x) {
  return 1 / (1 + std::exp(-x));
}

template <class T>
HWY_INLINE void combine_block(const ops::MoeCombine& op, std::int64_t t, std::int64_t at, std::size_t count) {
  HWY_ALIGN float sum[kBlock];
  load_row(static_cast<const T*>(row_at(op.residual, t)) + at, count, sum);
  const std::int64_t slots = op.weights.dim(1);
  for (std::int64_t j = 0; j < slots; ++j)
    accumulate(row_at(op.expert_out, t * slots + j), op.expert_out.dtype, at, count,
               static_cast<const float*>(row_at(op.weights, t))[j], sum);
  if (op.shared_out.present()) {
    const float gate = op.shared_gate.present()
                           ? sigmoid(read_parameter(op.shared_gate, t * op.shared_gate.strides[0]))
                           : 1.0f;
    accumulate(row_at(op.shared_out, t), op.shared_out.dtype, at, count, gate, sum);
  }
  store_row(sum, count, static_cast<T*>(row_at(op.out, t)) + at);
}

template <class T>
void combine_blocks(Context& context, const ops::MoeCombine& op) {
  const std::int64_t width = op.residual.dim(1);
  const std::int64_t blocks = (width + kBlock - 1) / kBlock;
  const std::int64_t grain = std::max<std::int64_t>(1, 32 / (op.weights.dim(1) + 2));
  context.pool().parallel_for(0, op.residual.dim(0) * blocks, grain,
                              [&](std::int64_t begin, std::int64_t end, int) HWY_ATTR {
                                for (std::int64_t b = begin; b < end; ++b) {
                                  const std::int64_t at = b % blocks * kBlock;
                                  combine_block<T>(op, b / blocks, at, to_size(std::min(kBlock, width - at)));
                                }
                              });
}

void moe_combine(Context& context, const ops::MoeCombine& op) {
  if (op.residual.dtype == ops::DType::f32)
    combine_blocks<float>(context, op);
  else
    combine_blocks<ops::BFloat16>(context, op);
}

}  // namespace sluice::backend::cpu::routing::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu::routing {

HWY_EXPORT(moe_combine);

}  // namespace sluice::backend::cpu::routing

namespace sluice::backend::cpu {

using namespace routing;

template <>
void run(Context& context, const ops::MoeCombine& op) {
  SLUICE_DISPATCH(context, moe_combine)(context, op);
}

}  // namespace sluice::backend::cpu
#endif
