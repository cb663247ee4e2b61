#include "base/error.h"
#include "base/integer_cast.h"
#include "ops/check.h"
#include "ops/check_weight.h"
#include "ops/overlap.h"

namespace sluice::ops {

namespace {

bool allows(TypeClass types, DType type) {
  switch (types) {
    case TypeClass::activation:
    case TypeClass::cache:
      return type == DType::f32 || type == DType::bf16;
    case TypeClass::parameter:
      return type == DType::f32 || type == DType::bf16 || type == DType::f16;
    case TypeClass::f32:
      return type == DType::f32;
    case TypeClass::i32:
      return type == DType::i32;
    case TypeClass::u8:
      return type == DType::u8;
  }
  return false;
}

std::string_view allowed_types(TypeClass types) {
  switch (types) {
    case TypeClass::activation:
    case TypeClass::cache:
      return "F32 or BF16";
    case TypeClass::parameter:
      return "F32, BF16 or F16";
    case TypeClass::f32:
      return "F32";
    case TypeClass::i32:
      return "I32";
    case TypeClass::u8:
      return "U8";
  }
  return "?";
}

// The value of an expression, or -1 if a symbol in it is unbound.
std::int64_t value_of(const DimExpression& e, const Dims& dims) {
  std::array<std::int64_t, 12> stack{};
  std::size_t top = 0;
  for (int i = 0; i < e.size; ++i) {
    const int code = e.code[to_size(i)];
    if (code >= DimExpression::kLiteral) {
      stack[top++] = code - DimExpression::kLiteral;
    } else if (code < DimExpression::kOperator) {
      const std::int64_t value = dims.values[to_size(code)];
      if (value < 0) return -1;
      stack[top++] = value;
    } else {
      const std::int64_t right = stack[--top];
      std::int64_t& left = stack[top - 1];
      switch (code - DimExpression::kOperator) {
        case 0:
          left += right;
          break;
        case 1:
          left -= right;
          break;
        case 2:
          left *= right;
          break;
        default:
          left = right == 0 ? -1 : left / right;
          break;
      }
    }
  }
  return stack[0];
}

// "[T,H,D] = [3,?,64]": the contract's shape with the known dimensions.
std::string describe(const ShapeSpec& spec, const Dims& dims, bool pooled) {
  std::string known;
  for (int i = 0; i < spec.rank; ++i) {
    const std::int64_t value = value_of(spec.dims[to_size(i)], dims);
    if (i > 0) known += ',';
    known += value < 0 ? "?" : std::to_string(value);
  }
  if (spec.whole) return fmt::format("{} (the shape of the first field)", to_string(dims.whole));
  return fmt::format("[{}{}] = [{}{}{}]", pooled ? "P," : "", spec.text, pooled ? "?," : "",
                     spec.leading ? "..," : "", known);
}

// Matches a shape against its specification and binds single symbols that are still free.
bool matches(const Shape& given, const ShapeSpec& spec, bool pooled, Dims& dims) {
  if (spec.whole) {
    if (!dims.whole_bound) dims.whole = given;
    dims.whole_bound = true;
    return dims.whole == given;
  }
  const int skip = spec.leading ? given.rank() - spec.rank : (pooled ? 1 : 0);
  if (spec.leading ? skip < 0 : given.rank() != spec.rank + skip) return false;
  if (spec.leading) {
    Shape leading;
    for (int i = 0; i < skip; ++i) leading.push_back(given[i]);
    if (!dims.leading_bound) dims.leading = leading;
    dims.leading_bound = true;
    if (!(dims.leading == leading)) return false;
  } else if (pooled) {
    std::int64_t& pool = dims["P"];
    if (pool < 0) pool = given[0];
    if (pool != given[0]) return false;
  }
  for (int i = 0; i < spec.rank; ++i) {
    const DimExpression& e = spec.dims[to_size(i)];
    if (e.lone_symbol() && dims.values[to_size(e.code[0])] < 0)
      dims.values[to_size(e.code[0])] = given[skip + i];
    if (value_of(e, dims) != given[skip + i]) return false;
  }
  return true;
}

void check_layout(std::string_view op, const FieldView& field, bool host_memory) {
  const ConstView& view = field.view;
  for (int d = 0; d < view.rank(); ++d)
    if (view.shape[d] < 0 || (view.shape[d] == 0 && !field.may_be_empty))
      fail(ErrorKind::input, "{}: field '{}' has shape {}, every dimension must be at least 1", op,
           field.name, to_string(view.shape));
  if (view.elements() == 0) return;
  if (view.data == nullptr) fail(ErrorKind::input, "{}: field '{}' has a null pointer", op, field.name);
  const bool any_address = host_memory && field.types == TypeClass::parameter;
  if (!any_address && reinterpret_cast<std::uintptr_t>(view.data) % size_bytes(view.dtype) != 0)
    fail(ErrorKind::input, "{}: field '{}' lies at an address that is not a multiple of {} bytes", op,
         field.name, size_bytes(view.dtype));
  std::int64_t inner = 1;
  for (int d = view.rank() - 1; d >= 0; --d) {
    const bool dense_last = d + 1 < view.rank() || view.strides[d] == 1 || view.shape[d] == 1;
    if (!dense_last || (view.shape[d] > 1 && view.strides[d] < inner))
      fail(ErrorKind::input,
           "{}: field '{}' has strides {} for shape {}; rows must not overlap and the last dimension "
           "must be contiguous",
           op, field.name, to_string(view.strides), to_string(view.shape));
    if (view.shape[d] > 1) inner = view.strides[d] * view.shape[d];
  }
}

void check_tensor(std::string_view op, const FieldView& field, bool pooled_fields, bool host_memory,
                  Dims& dims) {
  if (!allows(field.types, field.view.dtype))
    fail(ErrorKind::input, "{}: field '{}' has type {}, allowed is {}", op, field.name,
         name(field.view.dtype), allowed_types(field.types));
  check_layout(op, field, host_memory);
  const bool pooled = field.pooled && pooled_fields;
  const bool other = !field.other_shape->text.empty() && field.view.rank() == field.other_shape->rank;
  const ShapeSpec& spec = other ? *field.other_shape : *field.shape;
  if (!matches(field.view.shape, spec, pooled, dims))
    fail(ErrorKind::input, "{}: field '{}' has shape {}, allowed is {}{}", op, field.name,
         to_string(field.view.shape), describe(spec, dims, pooled),
         field.other_shape->text.empty()
             ? ""
             : fmt::format(" (or [{}])", (other ? field.shape : field.other_shape)->text));
}

void check_matrix(std::string_view op, const FieldView& field, Dims& dims) {
  if (field.weight != nullptr)
    check_weight(op, field.name, *field.weight);
  else
    check_expert_weights(op, field.name, *field.experts);
  const Shape shape = field.weight != nullptr ? field.weight->shape() : field.experts->shape();
  if (!matches(shape, *field.shape, false, dims))
    fail(ErrorKind::input, "{}: weight '{}' has shape {}, allowed is {}", op, field.name, to_string(shape),
         describe(*field.shape, dims, false));
}

void check_output_types(std::string_view op, std::span<const FieldView> fields) {
  const FieldView* first = nullptr;
  for (const FieldView& field : fields)
    if (first == nullptr && field.role != Role::out && field.types == TypeClass::activation &&
        field.present())
      first = &field;
  if (first == nullptr) return;
  for (const FieldView& field : fields)
    if (field.role == Role::out && field.types == TypeClass::activation && field.present() &&
        field.view.dtype != first->view.dtype && !(field.or_f32 && field.view.dtype == DType::f32))
      fail(ErrorKind::input, "{}: output '{}' has type {}, allowed is that of '{}', {}", op, field.name,
           name(field.view.dtype), first->name, name(first->view.dtype));
}

bool shares_memory(const FieldView& written, const FieldView& other) {
  if (other.weight == nullptr && other.experts == nullptr) return overlaps(written.view, other.view);
  const auto touches = [&](const Weight& weight) {
    return overlaps(written.view, weight.values) || overlaps(written.view, weight.scales) ||
           overlaps(written.view, weight.biases);
  };
  if (other.weight != nullptr) return touches(*other.weight);
  if (touches(other.experts->stack)) return true;
  for (const Weight& expert : other.experts->separate)
    if (touches(expert)) return true;
  return false;
}

void check_overlap(std::string_view op, std::span<const FieldView> fields) {
  for (const FieldView& written : fields) {
    if ((written.role != Role::out && written.role != Role::in_place) || !written.present()) continue;
    for (const FieldView& other : fields) {
      if (&other == &written || !other.present() || !shares_memory(written, other)) continue;
      const bool over_input =
          written.same_as_input && (other.role == Role::in || other.role == Role::optional);
      if (over_input && identical(written.view, other.view)) continue;
      fail(ErrorKind::input, "{}: field '{}' overlaps field '{}'{}", op, written.name, other.name,
           over_input ? ", which is allowed only if both are the same memory with the same shape" : "");
    }
  }
}

void check_field(std::string_view op, const FieldView& field, bool pooled, bool host_memory, Dims& dims) {
  if (!field.present()) {
    if (field.role == Role::optional || field.may_be_absent) return;
    fail(ErrorKind::input, "{}: field '{}' is missing, it must be [{}]", op, field.name, field.shape->text);
  }
  if (field.weight != nullptr || field.experts != nullptr)
    check_matrix(op, field, dims);
  else
    check_tensor(op, field, pooled, host_memory, dims);
}

}  // namespace

void check_inputs(std::string_view op, std::span<const FieldView> fields, bool pooled, bool host_memory,
                  Dims& dims) {
  for (const FieldView& field : fields)
    if (field.role != Role::out) check_field(op, field, pooled, host_memory, dims);
}

void check_fields(std::string_view op, std::span<const FieldView> fields, bool pooled, bool host_memory,
                  Dims& dims) {
  for (const FieldView& field : fields) check_field(op, field, pooled, host_memory, dims);
  check_output_types(op, fields);
  check_overlap(op, fields);
}

Shape evaluate(std::string_view op, std::string_view field, const ShapeSpec& spec, const Dims& dims,
               bool pooled) {
  if (spec.whole) return dims.whole;
  Shape shape = spec.leading ? dims.leading : Shape{};
  if (pooled) shape.push_back(dims["P"]);
  for (int i = 0; i < spec.rank; ++i) {
    const std::int64_t value = value_of(spec.dims[to_size(i)], dims);
    if (value < 0)
      fail(ErrorKind::input,
           "{}: the shape [{}] of '{}' does not follow from the given fields and attributes", op, spec.text,
           field);
    shape.push_back(value);
  }
  return shape;
}

}  // namespace sluice::ops
