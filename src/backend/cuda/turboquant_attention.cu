// out = softmax(scale * q kT) v straight from the packed cache.
//
// Keys and values stay in the rotated basis: q is rotated once, the sum of values rotated back once, in F32.
// BF16 queries of common widths over whole bytes run on tensor cores, everything else in F32.
#include "sluice/ops/turboquant_attention.h"

#include "backend/cuda/attend_packed.h"
#include "backend/cuda/attend_plain.cuh"
#include "backend/cuda/rotate_rows.h"

namespace sluice::backend::cuda {

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
  PackedCall packed{attend,
                    HeadRows(op.q),
                    PackedCache(op.k_codes, op.k_norms, op.k_bits, pooled),
                    PackedCache(op.v_codes, op.v_norms, op.v_bits, pooled),
                    static_cast<const unsigned char*>(op.signs.data),
                    op.rotated};
  const bool decode = context.decode_class(op.q.dim(0));
  const bool fast = packed_mma_supports(context, packed);
  if (fast) packed.attend.split_rows = kPackedSplitRows;
  // Scratch memory: rotated queries (the fast kernels rotate their own), sums to be rotated back, partial
  // results.
  const std::size_t bytes =
      op.rotated ? 0 : divide_up<std::size_t>(op.q.elements() * sizeof(float), 256) * 256;
  std::byte* scratch = context.scratch(2 * bytes + (decode ? SplitSizes(packed.attend).bytes : 0));
  const ops::View queries(scratch, ops::DType::f32, op.q.shape);
  const ops::View sums(scratch + bytes, ops::DType::f32, op.q.shape);
  if (!op.rotated) packed.attend.out = HeadRows(sums);
  if (fast && decode) {
    attend_packed_mma(context, packed, scratch + 2 * bytes);
  } else if (fast) {
    attend_packed_prefill(context, packed);
  } else {
    if (!op.rotated) {
      rotate_rows(context,
                  {op.q.data, queries.data, RowOffsets(op.q), RowOffsets(queries), packed.signs, false},
                  op.q.dim(2), op.q.dtype, ops::DType::f32);
      packed.queries = HeadRows(queries);
    }
    run_plain(context,
              PlainCall<PackedCache, PackedCache>{
                  packed.attend, {{packed.queries, {}}}, packed.keys, packed.values},
              scratch + 2 * bytes);
  }
  if (!op.rotated)
    rotate_rows(context, {sums.data, op.out.data, RowOffsets(sums), RowOffsets(op.out), packed.signs, true},
                op.q.dim(2), ops::DType::f32, op.out.dtype);
}

}  // namespace sluice::backend::cuda
