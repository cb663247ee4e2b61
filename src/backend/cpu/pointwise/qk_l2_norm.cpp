// x = x * rsqrt(sum(x^2) + eps) * scale for every head of q and of k, in place. Threaded over heads of
// tokens; a head is read twice, the second time from cache.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/pointwise/qk_l2_norm.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <cmath>

#include "backend/cpu/pointwise/norm-inl.h"
#include "backend/cpu/runtime/context.h"
#include "backend/cpu/runtime/row_walk.h"
#include "sluice/ops/pointwise/qk_l2_norm.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::pointwise::HWY_NAMESPACE {

template <class T>
HWY_INLINE void l2_norm_row(T* row, std::size_t width, double eps, double scale) {
  const double factor = scale / std::sqrt(sum_of_squares(row, width) + eps);
  scale_row(row, width, static_cast<float>(factor), nullptr, row);
}

void l2_norm_row(const ops::View& x, std::int64_t r, double eps, double scale) {
  const std::size_t width = x.shape.back();
  if (x.dtype == ops::DType::f32)
    l2_norm_row(static_cast<float*>(row_at(x, r)), width, eps, scale);
  else
    l2_norm_row(static_cast<ops::BFloat16*>(row_at(x, r)), width, eps, scale);
}

void qk_l2_norm(Context& context, const ops::QkL2Norm& op) {
  const std::int64_t rows = row_count(op.q.shape);
  const std::size_t width = op.q.shape.back();
  context.pool().parallel_for(0, 2 * rows, rows_per_task(width),
                              [&](std::int64_t begin, std::int64_t end, int) HWY_ATTR {
                                for (std::int64_t r = begin; r < end; ++r)
                                  if (r < rows)
                                    l2_norm_row(op.q, r, op.eps, op.q_scale);
                                  else
                                    l2_norm_row(op.k, r - rows, op.eps, op.k_scale);
                              });
}

}  // namespace sluice::backend::cpu::pointwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu::pointwise {

HWY_EXPORT(qk_l2_norm);

}  // namespace sluice::backend::cpu::pointwise

namespace sluice::backend::cpu {

using namespace pointwise;

template <>
void run(Context& context, const ops::QkL2Norm& op) {
  SLUICE_DISPATCH(context, qk_l2_norm)(context, op);
}

}  // namespace sluice::backend::cpu
#endif
