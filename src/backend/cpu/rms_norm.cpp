// out = x * rsqrt(mean(x^2) + eps) * weight, over the last dimension. Threaded over rows; a row is read once
// into cache and normalised there. The sum of squares is F32 over as many lanes as the vector has.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/rms_norm.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "backend/cpu/context.h"
#include "backend/cpu/norm-inl.h"
#include "backend/cpu/parameter.h"
#include "backend/cpu/row_walk.h"
#include "backend/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::HWY_NAMESPACE {

void rms_norm_rows(Context& context, const ops::RmsNorm& op) {
  const auto width = static_cast<std::size_t>(op.x.shape.back());
  float* weight = nullptr;
  if (op.weight.present()) {
    weight = reinterpret_cast<float*>(context.shared_scratch(width * sizeof(float)));
    read_parameters(op.weight, weight);
  }
  const auto rows = row_count(op.x.shape);
  context.pool().parallel_for(
      0, rows, rows_per_task(width), [&](std::int64_t begin, std::int64_t end, int worker) {
        auto* row = reinterpret_cast<float*>(context.worker_scratch(worker, width * sizeof(float)));
        for (std::int64_t r = begin; r < end; ++r) {
          load_row(row_at(op.x, r), op.x.dtype, width, row);
          const float mean = sum_of_squares(row, width) / static_cast<float>(width);
          scale_row(row, width, 1 / std::sqrt(mean + static_cast<float>(op.eps)), weight);
          store_row(row, width, row_at(op.out, r), op.out.dtype);
        }
      });
}

}  // namespace sluice::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu {

HWY_EXPORT(rms_norm_rows);

template <>
void run(Context& context, const ops::RmsNorm& op) {
  HWY_DYNAMIC_DISPATCH(rms_norm_rows)(context, op);
}

}  // namespace sluice::backend::cpu
#endif
