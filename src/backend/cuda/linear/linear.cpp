#include "backend/cuda/linear/linear.h"

#include <vector>

#include "backend/cuda/linear/decode/decode.h"
#include "backend/cuda/linear/prefill/prefill.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear {

namespace {

MatrixPointers pointers_of(const ops::Weight& w) {
  return {static_cast<const std::byte*>(w.values.data), static_cast<const std::byte*>(w.scales.data),
          static_cast<const std::byte*>(w.biases.data)};
}

int alignment_of(const std::byte* pointer, int at_most) {
  while (at_most > 1 && reinterpret_cast<std::uintptr_t>(pointer) % to_unsigned(at_most) != 0) at_most /= 2;
  return at_most;
}

// Lowers the alignments in `all` to those that `matrix` has, too.
void align(Matrices& all, const MatrixPointers& matrix) {
  all.alignment = alignment_of(matrix.values, all.alignment);
  all.scale_alignment = alignment_of(matrix.biases, alignment_of(matrix.scales, all.scale_alignment));
}

}  // namespace

Matrices matrices_of(const ops::Weight& w) {
  Matrices all;
  const ops::Shape shape = w.shape();
  all.storage = quant::storage_of(w);
  all.scale_type = quant::scale_type_of(w, w.scales);
  all.bits = w.quantized() ? w.bits : 8 * to_int(size_bytes(w.values.dtype));
  all.group_size = w.quantized() ? w.group_size : 1;
  all.row_bytes = shape.back() * all.bits / 8;
  all.bias_type = quant::scale_type_of(w, w.biases);
  all.scale_row_bytes = quant::row_bytes(w.scales);
  all.bias_row_bytes = quant::row_bytes(w.biases);
  all.first = pointers_of(w);
  all.step = shape.rank() == 3 ? shape[1] : 0;
  all.alignment = all.scale_alignment = 16;
  align(all, all.first);
  return all;
}

Matrices matrices_of(Context& context, const ops::ExpertWeights& experts) {
  if (experts.separate.empty()) return matrices_of(experts.stack);
  Matrices all = matrices_of(experts.separate[0]);
  std::vector<MatrixPointers> table;
  table.reserve(experts.separate.size());
  for (const ops::Weight& expert : experts.separate) {
    table.push_back(pointers_of(expert));
    align(all, table.back());
  }
  all.table = reinterpret_cast<const MatrixPointers*>(
      context.resident(std::as_bytes(std::span<const MatrixPointers>(table))));
  return all;
}

Matrices head_rows(const ops::Weight& weight, std::int64_t step, std::int64_t first) {
  Matrices all = matrices_of(weight);
  all.first.values += first * all.row_bytes;
  all.first.scales += first * all.scale_row_bytes;
  all.first.biases += first * all.bias_row_bytes;
  all.step = step;
  align(all, all.first);
  return all;
}

LinearCall linear_call(const ops::ConstView& x, const ops::View& out) {
  LinearCall call;
  call.type = x.dtype;
  call.out_type = out.dtype;
  call.x = x.data;
  call.x_token = x.strides[0];
  call.x_slot = x.rank() == 3 ? x.strides[1] : 0;
  call.out = out.data;
  call.out_token = out.strides[0];
  call.out_slot = out.rank() == 3 ? out.strides[1] : 0;
  call.tokens = out.dim(0);
  call.slots = out.rank() == 3 ? out.dim(1) : 1;
  call.matrices = call.slots;
  call.inputs = x.shape.back();
  call.outputs = out.shape.back();
  return call;
}

LinearCall linear_call(const ops::ConstView& x, const ops::ConstView& experts, std::int64_t matrices,
                       const ops::View& out) {
  LinearCall call = linear_call(x, out);
  call.experts = static_cast<const int*>(experts.data);
  call.experts_token = experts.strides[0];
  call.matrices = matrices;
  return call;
}

void run_linear(Context& context, const LinearCall& call) {
  if (!context.decode_class(call.tokens) && prefill::supports_prefill(call, context.device()))
    return prefill::launch_prefill(context, call);
  decode::launch_decode(context, call);
}

}  // namespace sluice::backend::cuda::linear
