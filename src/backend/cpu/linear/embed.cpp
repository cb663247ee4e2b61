// out[t] = table[ids[t]], dequantised. Threaded over tokens; reads one packed row and writes one row per
// token.
#include "sluice/ops/linear/embed.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/linear/embed.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <algorithm>

#include "backend/cpu/linear/dequantize-inl.h"
#include "backend/cpu/runtime/context.h"
#include "backend/cpu/runtime/row_walk.h"
#include "base/integer_cast.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::linear::HWY_NAMESPACE {

template <class Format>
void embed_rows(Context& context, const ops::Embed& op) {
  const Matrices table(op.table);
  const MatrixFormat& format = table.format();
  const Matrix matrix = table[0];
  const std::int64_t chunks = chunk_count<Format>(format.columns);
  const std::int64_t groups = padded_groups(format) + kLanes;
  const auto* ids = static_cast<const std::int32_t*>(op.ids.data);
  context.pool().parallel_for(0, op.ids.dim(0), 8, [&](std::int64_t begin, std::int64_t end, int worker) {
    auto* scales = reinterpret_cast<float*>(context.worker_scratch(
        worker, to_size(2 * groups + chunks * chunk_elements<Format>()) * sizeof(float)));
    float* biases = scales + groups;
    float* row = biases + groups;
    const float one = 1;
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t id = ids[t];
      read_groups<Format>(format, matrix, id, scales, biases);
      for (std::int64_t c = 0; c < chunks; ++c)
        sum_rows_chunk<Format>(format, {matrix.values + id * format.row_bytes, 1, scales, biases, groups}, c,
                               &one, row + c * chunk_elements<Format>());
      store_row(row, to_size(format.columns), row_at(op.out, t), op.out.dtype);
    }
  });
}

void embed(Context& context, const ops::Embed& op) {
  with_format(Matrices(op.table).format().storage,
              [&]<class Format>(const Format&) { embed_rows<Format>(context, op); });
}

}  // namespace sluice::backend::cpu::linear::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu::linear {

HWY_EXPORT(embed);

}  // namespace sluice::backend::cpu::linear

namespace sluice::backend::cpu {

using namespace linear;

template <>
void run(Context& context, const ops::Embed& op) {
  SLUICE_DISPATCH(context, embed)(context, op);
}

}  // namespace sluice::backend::cpu
#endif
