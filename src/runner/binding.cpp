#include "runner/binding.h"

#include "base/error.h"
#include "base/integer_cast.h"
#include "base/quote.h"
#include "quant/formats.h"
#include "runner/attributes.h"

namespace sluice::runner {

using ops::ConstView;
using ops::DType;
using ops::FieldView;
using ops::TypeClass;
using ops::View;
using ops::Weight;

namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;

DType output_type(TypeClass types, std::span<const FieldView> fields) {
  if (types == TypeClass::i32) return DType::i32;
  if (types == TypeClass::u8) return DType::u8;
  if (types == TypeClass::activation)
    for (const FieldView& field : fields)
      if (field.role != ops::Role::out && field.types == TypeClass::activation && field.present())
        return field.view.dtype;
  return DType::f32;
}

}  // namespace

const ConstView* Binding::take(const std::string& name) {
  used_.insert(name);
  const auto found = arguments_.tensors.find(name);
  return found == arguments_.tensors.end() ? nullptr : &found->second;
}

const std::string* Binding::take_attribute(const std::string& name) {
  used_attributes_.insert(name);
  const auto found = arguments_.attributes.find(name);
  return found == arguments_.attributes.end() ? nullptr : &found->second;
}

const std::string* Binding::text_of(const AttributeName& attribute) {
  const std::string* text = take_attribute(std::string(attribute.name));
  if (text == nullptr && attribute.required)
    fail(ErrorKind::input, "{}: attribute '{}' is missing", op_, attribute.name);
  return text;
}

void Binding::refuse_both(std::string_view name, bool field_given) const {
  if (field_given && arguments_.attributes.contains(std::string(name)))
    fail(ErrorKind::input, "{}: '{}' is given both as a field and as an attribute", op_, name);
}

ConstView Binding::input(std::string_view name) {
  if (!borrow_) return updated(name);
  const ConstView* tensor = take(std::string(name));
  return tensor == nullptr ? ConstView{} : *tensor;
}

View Binding::updated(std::string_view name) {
  const ConstView* tensor = take(std::string(name));
  if (tensor == nullptr) return {};
  const std::size_t bytes = to_size(tensor->elements()) * size_bytes(tensor->dtype);
  ops::Buffer& buffer = buffers_.emplace_back(backend_.allocate(bytes));
  if (arguments_.in_backend_memory)
    backend_.copy(buffer.data(), tensor->data, bytes);
  else
    backend_.upload(buffer.data(), tensor->data, bytes);
  return {buffer.data(), tensor->dtype, tensor->shape};
}

Weight Binding::weight(std::string_view field) {
  const std::string name(field);
  Weight weight;
  weight.values = input(name);
  const ConstView packed = input(name + ".weight");
  if (packed.present() && weight.values.present())
    fail(ErrorKind::input, "{}: weight '{}' is given both dense and as '{}.weight'", op_, name, name);
  if (packed.present()) weight.values = packed;
  weight.scales = input(name + ".scales");
  weight.biases = input(name + ".biases");
  if (!packed.present()) return refuse_format(name), weight;
  const std::string mode = name + ".mode";
  if (const auto* given = take_attribute(mode)) {
    const quant::Format* format = quant::find_format(*given);
    if (format == nullptr)
      fail(ErrorKind::input, "{}: attribute '{}' is {}, allowed is {}", op_, mode, quote(*given),
           quant::format_names());
    weight.mode = format->mode;
  }
  const quant::Format& format = quant::format_of(weight.mode);
  if (format.scales != quant::Plane::none && !weight.scales.present())
    fail(ErrorKind::input, "{}: weight '{}.weight' has no '{}.scales'", op_, name, name);
  weight.bits = format.bits.front();
  weight.group_size = format.group_sizes.front();
  if (const auto* bits = take_attribute(name + ".bits")) weight.bits = small_integer(name + ".bits", *bits);
  if (const auto* group = take_attribute(name + ".group_size"))
    weight.group_size = small_integer(name + ".group_size", *group);
  return weight;
}

// Only packed weights have format attributes.
void Binding::refuse_format(const std::string& weight) const {
  for (const char* attribute : {".mode", ".bits", ".group_size"})
    if (arguments_.attributes.contains(weight + attribute))
      fail(ErrorKind::input, "{}: attribute '{}{}' is given without '{}.weight', a dense weight has no such",
           op_, weight, attribute, weight);
}

int Binding::small_integer(const std::string& attribute, const std::string& text) const {
  const std::int64_t value = parse_integer(op_, attribute, text);
  if (value < 1 || value > 1024)
    fail(ErrorKind::input, "{}: attribute '{}' is {}, allowed is 1 to 1024", op_, attribute, value);
  return static_cast<int>(value);
}

void Binding::read(const AttributeName& attribute, double& value) {
  if (const std::string* text = text_of(attribute)) value = parse_number(op_, attribute.name, *text);
}

void Binding::read(const AttributeName& attribute, std::int64_t& value) {
  if (const std::string* text = text_of(attribute)) value = parse_integer(op_, attribute.name, *text);
}

void Binding::read(const AttributeName& attribute, bool& value) {
  if (const std::string* text = text_of(attribute)) value = parse_bool(op_, attribute.name, *text);
}

// One number per call, or a field with one per sequence.
void Binding::read(const AttributeName& attribute, ops::SequenceValue& value) {
  const std::string_view name = attribute.name;
  value.per_sequence = input(name);
  const bool given = value.per_sequence.present();
  refuse_both(name, given);
  const std::string* text = text_of({name, attribute.required && !given});
  if (text == nullptr) return;
  if (arguments_.tensors.contains("seq_starts"))
    fail(ErrorKind::input, "{}: attribute '{}' is one number, under 'seq_starts' it must be a field I32 [B]",
         op_, name);
  value.value = parse_integer(op_, name, *text);
}

std::optional<std::size_t> Binding::choice(const AttributeName& attribute,
                                           std::span<const std::string_view> names) {
  const std::string* text = text_of(attribute);
  if (text == nullptr) return std::nullopt;
  return parse_choice(op_, attribute.name, *text, names);
}

void Binding::refuse_unknown() const {
  for (const auto& [name, tensor] : arguments_.tensors)
    if (!used_.contains(name)) fail(ErrorKind::input, "{}: there is no input field '{}'", op_, name);
  for (const auto& [name, text] : arguments_.attributes)
    if (!used_attributes_.contains(name)) fail(ErrorKind::input, "{}: there is no attribute '{}'", op_, name);
}

View Binding::output(const FieldView& field, std::span<const FieldView> fields, const ops::Dims& dims) {
  const ops::Shape shape = evaluate(op_, field.name, *field.shape, dims, false);
  const DType type = output_type(field.types, fields);
  std::int64_t elements = 1;
  for (const std::int64_t dim : shape.dims())
    if (dim < 0 || __builtin_mul_overflow(elements, dim, &elements) || elements > kMaxElements)
      fail(ErrorKind::input, "{}: output '{}' would have shape {}", op_, field.name, to_string(shape));
  const std::size_t bytes = to_size(elements) * size_bytes(type);
  ops::Buffer& buffer = buffers_.emplace_back(backend_.allocate(bytes));
  if (poison_) {
    const std::vector<std::byte> poison(bytes, std::byte{0xff});  // NaN, or -1
    backend_.upload(buffer.data(), poison.data(), bytes);
  }
  return {buffer.data(), type, shape};
}

}  // namespace sluice::runner
