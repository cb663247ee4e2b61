#include "ops/check_weight.h"

#include "base/error.h"

namespace sluice::ops {

namespace {

bool is_float(DType type) {
  return type == DType::f32 || type == DType::bf16 || type == DType::f16;
}

void check_part(std::string_view op, std::string_view field, std::string_view part, const ConstView& view) {
  for (const std::int64_t dim : view.shape.dims())
    if (dim < 1)
      fail(ErrorKind::input, "{}: weight '{}{}' has shape {}, every dimension must be at least 1", op, field,
           part, to_string(view.shape));
  if (view.data == nullptr) fail(ErrorKind::input, "{}: weight '{}{}' has a null pointer", op, field, part);
  if (!view.contiguous())
    fail(ErrorKind::input, "{}: weight '{}{}' has strides {} for shape {}, it must be contiguous", op, field,
         part, to_string(view.strides), to_string(view.shape));
}

void check_format(std::string_view op, std::string_view field, const Weight& w) {
  if (w.mode == QuantMode::affine) {
    if (w.bits != 2 && w.bits != 3 && w.bits != 4 && w.bits != 5 && w.bits != 6 && w.bits != 8)
      fail(ErrorKind::input, "{}: weight '{}' has {} bits, affine allows 2, 3, 4, 5, 6 and 8", op, field,
           w.bits);
    if (w.group_size != 32 && w.group_size != 64 && w.group_size != 128)
      fail(ErrorKind::input, "{}: weight '{}' has groups of {}, affine allows 32, 64 and 128", op, field,
           w.group_size);
    return;
  }
  const int bits = w.mode == QuantMode::mxfp8 ? 8 : 4;
  const int group = w.mode == QuantMode::nvfp4 ? 16 : 32;
  if (w.bits != bits || w.group_size != group)
    fail(ErrorKind::input, "{}: weight '{}' has {} bits in groups of {}, {} allows {} bits in groups of {}",
         op, field, w.bits, w.group_size, name(w.mode), bits, group);
}

void check_scale_part(std::string_view op, std::string_view field, std::string_view part,
                      const ConstView& view, const Weight& w) {
  check_part(op, field, part, view);
  const bool type_fits = w.mode == QuantMode::affine ? is_float(view.dtype) : view.dtype == DType::u8;
  if (!type_fits)
    fail(ErrorKind::input, "{}: weight '{}{}' has type {}, {} allows {}", op, field, part, name(view.dtype),
         name(w.mode), w.mode == QuantMode::affine ? "F32, BF16 or F16" : "U8");
  Shape allowed = w.shape();
  allowed[allowed.rank() - 1] = allowed.back() / w.group_size;
  if (!(view.shape == allowed))
    fail(ErrorKind::input, "{}: weight '{}{}' has shape {}, allowed is {} (groups of {})", op, field, part,
         to_string(view.shape), to_string(allowed), w.group_size);
}

}  // namespace

void check_weight(std::string_view op, std::string_view field, const Weight& w) {
  if (!w.quantized()) {
    if (w.biases.present()) fail(ErrorKind::input, "{}: weight '{}' has biases but no scales", op, field);
    if (!is_float(w.values.dtype))
      fail(ErrorKind::input, "{}: dense weight '{}' has type {}, allowed is F32, BF16 or F16", op, field,
           name(w.values.dtype));
    check_part(op, field, "", w.values);
    return;
  }
  check_format(op, field, w);
  if (w.values.dtype != DType::u32)
    fail(ErrorKind::input, "{}: weight '{}.weight' has type {}, allowed is U32", op, field,
         name(w.values.dtype));
  check_part(op, field, ".weight", w.values);
  const std::int64_t packed_bits = w.values.shape.back() * 32;
  if (packed_bits % w.bits != 0 || (packed_bits / w.bits) % w.group_size != 0)
    fail(ErrorKind::input,
         "{}: weight '{}.weight' has rows of {} words, which is no whole number of groups of {} at {} "
         "bits",
         op, field, w.values.shape.back(), w.group_size, w.bits);
  check_scale_part(op, field, ".scales", w.scales, w);
  if ((w.mode == QuantMode::affine) != w.biases.present())
    fail(ErrorKind::input, "{}: weight '{}' {} biases, {} {} them", op, field,
         w.biases.present() ? "has" : "lacks", name(w.mode),
         w.mode == QuantMode::affine ? "needs" : "does not take");
  if (!w.biases.present()) return;
  check_scale_part(op, field, ".biases", w.biases, w);
}

void check_expert_weights(std::string_view op, std::string_view field, const ExpertWeights& weights) {
  if (weights.separate.empty()) return check_weight(op, field, weights.stack);
  if (weights.stack.present())
    fail(ErrorKind::input, "{}: experts '{}' are given both as a stack and one by one", op, field);
  const Weight& first = weights.separate[0];
  for (const Weight& expert : weights.separate) {
    check_weight(op, field, expert);
    if (expert.values.rank() != 2 || !(expert.shape() == first.shape()) ||
        expert.quantized() != first.quantized() || expert.values.dtype != first.values.dtype ||
        expert.mode != first.mode || expert.bits != first.bits || expert.group_size != first.group_size ||
        expert.scales.dtype != first.scales.dtype || expert.biases.dtype != first.biases.dtype)
      fail(ErrorKind::input,
           "{}: experts '{}' differ: one has shape {}, another {}; all must be [N,K] in one format", op,
           field, to_string(first.shape()), to_string(expert.shape()));
  }
}

}  // namespace sluice::ops
