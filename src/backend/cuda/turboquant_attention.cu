// out = softmax(scale * q kT) v straight from the packed cache.
//
// Keys and values stay in the rotated basis: q is rotated once into scratch memory, the sum of values rotated
// back once, both in F32.
#include "sluice/ops/turboquant_attention.h"

#include "backend/cuda/attend_plain.cuh"
#include "backend/cuda/packed_cache.cuh"
#include "backend/cuda/rotate_rows.h"

namespace sluice::backend::cuda {

namespace {

const unsigned char* signs_of(const ops::TurboquantAttention& op) {
  return static_cast<const unsigned char*>(op.signs.data);
}

}  // namespace

template <>
void run(Context& context, const ops::TurboquantAttention& op) {
  const bool pooled = op.seq_starts.present();
  const int head = pooled ? 1 : 0;
  AttendCall attend(op, op.q.dim(0), op.out, op.length);
  attend.position_is_length = true;
  attend.group = static_cast<int>(op.q.dim(1) / op.k_codes.dim(head));
  attend.window = op.window;
  attend.capacity = op.k_codes.dim(head + 1);
  attend.pool = pooled ? op.k_codes.dim(0) : 1;
  attend.fault = context.fault();
  attend.ring_start = SequenceNumber(op.ring_start);
  PlainCall<PackedCache, PackedCache> call{attend,
                                           {{HeadRows(op.q), {}}},
                                           PackedCache(op.k_codes, op.k_norms, op.k_bits, pooled),
                                           PackedCache(op.v_codes, op.v_norms, op.v_bits, pooled)};
  if (op.rotated) return run_plain(context, call);
  const std::size_t bytes = divide_up<std::size_t>(op.q.elements() * sizeof(float), 256) * 256;
  std::byte* scratch = context.scratch(2 * bytes + SplitSizes(attend).bytes);
  const ops::View queries(scratch, ops::DType::f32, op.q.shape);
  const ops::View sums(scratch + bytes, ops::DType::f32, op.q.shape);
  rotate_rows(context, {op.q.data, queries.data, RowOffsets(op.q), RowOffsets(queries), signs_of(op), false},
              op.q.dim(2), op.q.dtype, ops::DType::f32);
  call.queries.pieces[0] = HeadRows(queries);
  call.attend.out = HeadRows(sums);
  run_plain(context, call, scratch + 2 * bytes);
  rotate_rows(context, {sums.data, op.out.data, RowOffsets(sums), RowOffsets(op.out), signs_of(op), true},
              op.q.dim(2), ops::DType::f32, op.out.dtype);
}

}  // namespace sluice::backend::cuda
