#include "ops/check_weight.h"

#include "base/error.h"
#include "quant/formats.h"

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
  const quant::Format& format = quant::format_of(w.mode);
  if (!quant::allows(format.bits, w.bits))
    fail(ErrorKind::input, "{}: weight '{}' has {} bits, {} allows {}", op, field, w.bits, format.name,
         quant::allowed_text(format.bits));
  if (!quant::allows(format.group_sizes, w.group_size))
    fail(ErrorKind::input, "{}: weight '{}' has groups of {}, {} allows {}", op, field, w.group_size,
         format.name, quant::allowed_text(format.group_sizes));
}

void check_plane(std::string_view op, std::string_view field, std::string_view part, const ConstView& view,
                 const Weight& w) {
  const quant::Format& format = quant::format_of(w.mode);
  const quant::Plane plane = part == ".scales" ? format.scales : format.biases;
  if ((plane != quant::Plane::none) != view.present())
    fail(ErrorKind::input, "{}: weight '{}' {} {}, {} {} them", op, field, view.present() ? "has" : "lacks",
         part.substr(1), format.name, view.present() ? "does not take" : "needs");
  if (!view.present()) return;
  check_part(op, field, part, view);
  const bool floats = plane == quant::Plane::floats;
  if (floats ? !is_float(view.dtype) : view.dtype != DType::u8)
    fail(ErrorKind::input, "{}: weight '{}{}' has type {}, {} allows {}", op, field, part, name(view.dtype),
         format.name, floats ? "F32, BF16 or F16" : "U8");
  Shape allowed = w.shape();
  allowed[allowed.rank() - 1] = allowed.back() / w.group_size;
  if (!(view.shape == allowed))
    fail(ErrorKind::input, "{}: weight '{}{}' has shape {}, allowed is {} (groups of {})", op, field, part,
         to_string(view.shape), to_string(allowed), w.group_size);
}

bool same_layout(const ConstView& a, const ConstView& b) {
  return a.dtype == b.dtype && (a.data == nullptr) == (b.data == nullptr) && a.shape == b.shape &&
         a.strides == b.strides;
}

// Whether what was checked for one also holds for the other: every op checks hundreds of experts.
bool same_but_place(const Weight& a, const Weight& b) {
  return same_layout(a.values, b.values) && same_layout(a.scales, b.scales) &&
         same_layout(a.biases, b.biases) && a.mode == b.mode && a.bits == b.bits &&
         a.group_size == b.group_size;
}

}  // namespace

void check_weight(std::string_view op, std::string_view field, const Weight& w) {
  if (!w.quantized()) {
    for (const ConstView* plane : {&w.scales, &w.biases})
      if (plane->present())
        fail(ErrorKind::input, "{}: weight '{}' has {}, but values of type {}, packed ones are U32", op,
             field, plane == &w.scales ? "scales" : "biases", name(w.values.dtype));
    if (!is_float(w.values.dtype))
      fail(ErrorKind::input, "{}: dense weight '{}' has type {}, allowed is F32, BF16 or F16", op, field,
           name(w.values.dtype));
    check_part(op, field, "", w.values);
    return;
  }
  check_format(op, field, w);
  const quant::Format& format = quant::format_of(w.mode);
  if (w.values.dtype != format.value_type())
    fail(ErrorKind::input, "{}: weight '{}.weight' has type {}, {} allows {}", op, field,
         name(w.values.dtype), format.name, name(format.value_type()));
  check_part(op, field, ".weight", w.values);
  const std::int64_t stored = w.values.shape.back();
  if (format.in_blocks() ? stored % format.block_bytes != 0
                         : stored * 32 % w.bits != 0 || stored * 32 / w.bits % w.group_size != 0)
    fail(ErrorKind::input,
         "{}: weight '{}.weight' has rows of {} words, which is not a whole number of groups of {} at {} "
         "bits",
         op, field, stored, w.group_size, w.bits);
  check_plane(op, field, ".scales", w.scales, w);
  check_plane(op, field, ".biases", w.biases, w);
}

void check_expert_weights(std::string_view op, std::string_view field, const ExpertWeights& weights) {
  if (weights.separate.empty()) return check_weight(op, field, weights.stack);
  if (weights.stack.present())
    fail(ErrorKind::input, "{}: experts '{}' are given both as a stack and one by one", op, field);
  const Weight& first = weights.separate[0];
  for (const Weight& expert : weights.separate) {
    if (&expert != &first && same_but_place(expert, first)) continue;
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
