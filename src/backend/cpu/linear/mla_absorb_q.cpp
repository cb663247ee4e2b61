// q_latent[t,h] = q_nope[t,h] K_h. With embed_q this is a product with [rank,nope] matrices, one per head.
// With kv_b it is a sum of K rows weighted by the query: threaded over (head, chunk of the rank), with each K
// row read once per token and unpacked in registers, and its group scales multiplied into the weight of the
// row.
#include "sluice/ops/linear/mla_absorb_q.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/linear/mla_absorb_q.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <algorithm>

#include "backend/cpu/linear/dequantize-inl.h"
#include "backend/cpu/linear/linear.h"
#include "backend/cpu/runtime/row_walk.h"
#include "base/integer_cast.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::linear::HWY_NAMESPACE {

template <class Format>
void absorb_rows(Context& context, const ops::MlaAbsorbQ& op, const Matrices& keys) {
  const MatrixFormat& format = keys.format();
  const std::int64_t tokens = op.q_nope.dim(0);
  const std::int64_t heads = op.q_nope.dim(1);
  const std::int64_t chunks = chunk_count<Format>(format.columns);
  const std::int64_t groups = padded_groups(format) + kLanes;
  const std::int64_t nope = round_up(format.rows, kLanes);
  const std::int64_t rank = chunks * chunk_elements<Format>();
  context.pool().parallel_for_dynamic(0, heads, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
    auto* q = reinterpret_cast<float*>(
        context.worker_scratch(worker, to_size(nope + rank + 2 * groups * format.rows) * sizeof(float)));
    float* latent = q + nope;
    float* scales = latent + rank;
    float* biases = scales + groups * format.rows;
    for (std::int64_t h = begin; h < end; ++h) {
      const Matrix key = keys[h];
      for (std::int64_t n = 0; n < format.rows; ++n)
        read_groups<Format>(format, key, n, scales + n * groups, biases + n * groups);
      for (std::int64_t t = 0; t < tokens; ++t) {
        load_row(row_at(op.q_nope, t * heads + h), op.q_nope.dtype, to_size(format.rows), q);
        for (std::int64_t c = 0; c < chunks; ++c)
          sum_rows_chunk<Format>(format, {key.values, format.rows, scales, biases, groups}, c, q,
                                 latent + c * chunk_elements<Format>());
        store_row(latent, to_size(format.columns), row_at(op.q_latent, t * heads + h), op.q_latent.dtype);
      }
    }
  });
}

void absorb(Context& context, const ops::MlaAbsorbQ& op) {
  const std::int64_t nope = op.q_nope.dim(2);
  const Matrices keys(op.kv_b, op.q_nope.dim(1), nope + op.v, 0, nope);
  with_format(keys.format().storage,
              [&]<class Format>(const Format&) { absorb_rows<Format>(context, op, keys); });
}

}  // namespace sluice::backend::cpu::linear::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu::linear {

HWY_EXPORT(absorb);

}  // namespace sluice::backend::cpu::linear

namespace sluice::backend::cpu {

using namespace linear;

template <>
void run(Context& context, const ops::MlaAbsorbQ& op) {
  if (op.kv_b.present()) return SLUICE_DISPATCH(context, absorb)(context, op);
  Linear linear;
  linear.x = op.q_nope;
  linear.w = Matrices(op.embed_q);
  linear.out = op.q_latent;
  run_linear(context, linear);
}

}  // namespace sluice::backend::cpu
#endif
