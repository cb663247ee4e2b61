#include "ops/delta_step_parts.h"

#include <cmath>

#include "base/integer_cast.h"

namespace sluice::ops {

namespace {

std::size_t bytes_of(const ConstView& view) {
  return to_size(view.elements()) * size_bytes(view.dtype);
}

}  // namespace

std::size_t DeltaStepParts::bytes(const DeltaStep& op) {
  return 2 * to_size(op.a.elements()) * sizeof(float) + bytes_of(op.qkv);
}

DeltaStepParts::DeltaStepParts(const DeltaStep& op, std::byte* memory) {
  const std::int64_t width = op.state.shape.back();
  const std::int64_t heads = op.key_heads();
  const std::int64_t keys = heads * width;
  const View g(memory, DType::f32, op.a.shape);
  const View beta(memory + bytes_of(g), DType::f32, op.a.shape);
  const View convolved(memory + 2 * bytes_of(g), op.qkv.dtype, op.qkv.shape);
  const View q = convolved.columns(0, keys, {heads, width});
  const View k = convolved.columns(keys, keys, {heads, width});
  const View v = convolved.columns(2 * keys, op.z.dim(1) * op.z.dim(2), {op.z.dim(1), op.z.dim(2)});
  conv = {op.qkv, op.conv_weight, op.conv_state, convolved, op.seq_starts, op.slots};
  norm = {q, k, op.qk_eps, 1 / std::sqrt(width), 1};
  gates = {op.a, op.b, op.A_log, op.dt_bias, g, beta};
  rule = {q, k, v, g, beta, op.state, op.out, op.seq_starts, op.slots, DeltaForm::recurrent};
  gate = {op.out, op.z, op.norm_weight, op.out, op.eps};
}

}  // namespace sluice::ops
