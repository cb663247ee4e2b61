#include "runner/bound_op.h"

#include <cstring>
#include <set>

#include "base/error.h"
#include "ops/erase.h"
#include "runner/attributes.h"
#include "runner/find_op.h"

namespace sluice::runner {

namespace {

using namespace ops;  // NOLINT(google-build-using-namespace): this file is about ops

template <class Op>
class TypedBoundOp final : public BoundOp {
 public:
  TypedBoundOp(Backend& backend, const OpFile& file) : backend_(backend), file_(file) {
    for_each_entry<Op>([&](const auto& entry) { bind_entry(entry); });
    refuse_unknown();
    check_attributes(op_);
    ErasedOp<Op> erased(op_);
    check_inputs(Op::kName, erased.fields, erased.pooled, false, erased.dims);
    for_each_entry<Op>([&](const auto& entry) { allocate_output(entry, erased); });
    check(op_, false);  // shapes; the backend checks contents before it runs
  }

  void enqueue() override { backend_.run(op_); }
  void run() override {
    enqueue();
    backend_.synchronize();
  }

  OpFile outputs() override {
    OpFile result;
    for_each_entry<Op>([&](const auto& entry) {
      if constexpr (std::is_same_v<Member<std::remove_cvref_t<decltype(entry)>>, View>) {
        const View& view = op_.*entry.member;
        HostTensor tensor(view.dtype, view.shape);
        backend_.download(tensor.bytes.data(), view.data, tensor.bytes.size());
        result.tensors.emplace(entry.name, std::move(tensor));
      }
    });
    return result;
  }

 private:
  const HostTensor* take(const std::string& name) {
    used_.insert(name);
    const auto found = file_.tensors.find(name);
    return found == file_.tensors.end() ? nullptr : &found->second;
  }
  const std::string* take_attribute(const std::string& name) {
    used_attributes_.insert(name);
    const auto found = file_.attributes.find(name);
    return found == file_.attributes.end() ? nullptr : &found->second;
  }

  View upload(const std::string& name) {
    const HostTensor* tensor = take(name);
    if (tensor == nullptr) return {};
    Buffer& buffer = buffers_.emplace_back(backend_.allocate(tensor->bytes.size()));
    backend_.upload(buffer.data(), tensor->bytes.data(), tensor->bytes.size());
    return {buffer.data(), tensor->dtype, tensor->shape};
  }

  Weight upload_weight(const std::string& name) {
    Weight weight;
    weight.values = upload(name);
    const View packed = upload(name + ".weight");
    if (packed.present() && weight.values.present())
      fail(ErrorKind::input, "{}: weight '{}' is given both dense and as '{}.weight'", Op::kName, name, name);
    if (packed.present()) weight.values = packed;
    weight.scales = upload(name + ".scales");
    weight.biases = upload(name + ".biases");
    if (packed.present() && !weight.scales.present())
      fail(ErrorKind::input, "{}: weight '{}.weight' has no '{}.scales'", Op::kName, name, name);
    if (!packed.present()) return refuse_format(name), weight;
    constexpr std::array<std::string_view, 4> kModes = {"affine", "mxfp4", "mxfp8", "nvfp4"};
    if (const auto* mode = take_attribute(name + ".mode"))
      weight.mode = static_cast<QuantMode>(parse_choice(Op::kName, name + ".mode", *mode, kModes));
    weight.bits = weight.mode == QuantMode::mxfp8 ? 8 : 4;
    weight.group_size = weight.mode == QuantMode::affine ? 64 : weight.mode == QuantMode::nvfp4 ? 16 : 32;
    if (const auto* bits = take_attribute(name + ".bits"))
      weight.bits = static_cast<int>(small_integer(name + ".bits", *bits));
    if (const auto* group = take_attribute(name + ".group_size"))
      weight.group_size = static_cast<int>(small_integer(name + ".group_size", *group));
    return weight;
  }

  // Only packed weights have a format to choose.
  void refuse_format(const std::string& weight) {
    for (const char* attribute : {".mode", ".bits", ".group_size"})
      if (file_.attributes.contains(weight + attribute))
        fail(ErrorKind::input,
             "{}: attribute '{}{}' is given without '{}.weight', a dense weight has no such", Op::kName,
             weight, attribute, weight);
  }

  std::int64_t small_integer(const std::string& attribute, const std::string& text) {
    const std::int64_t value = parse_integer(Op::kName, attribute, text);
    if (value < 1 || value > 1024)
      fail(ErrorKind::input, "{}: attribute '{}' is {}, allowed is 1 to 1024", Op::kName, attribute, value);
    return value;
  }

  template <class M>
  void bind_entry(const Field<Op, M>& field) {
    const std::string name(field.name);
    if constexpr (std::is_same_v<M, Weight>)
      op_.*field.member = upload_weight(name);
    else if constexpr (std::is_same_v<M, ExpertWeights>)
      (op_.*field.member).stack = upload_weight(name);
    else if (field.role != Role::out)
      op_.*field.member = upload(name);
  }

  template <class M>
  void bind_entry(const Attribute<Op, M>& attribute) {
    const std::string name(attribute.name);
    M& value = op_.*attribute.member;
    const std::string* text = take_attribute(name);
    if constexpr (std::is_same_v<M, SequenceValue>) {
      value.per_sequence = upload(name);
      if (text != nullptr && value.per_sequence.present())
        fail(ErrorKind::input, "{}: '{}' is given both as a field and as an attribute", Op::kName, name);
      if (text != nullptr && file_.tensors.contains("seq_starts"))
        fail(ErrorKind::input,
             "{}: attribute '{}' is one number, under 'seq_starts' it must be a field I32 [B]", Op::kName,
             name);
      if (text != nullptr) value.value = parse_integer(Op::kName, name, *text);
      if (text == nullptr && !value.per_sequence.present() && attribute.required) missing(name);
      return;
    } else if (text == nullptr) {
      if (attribute.required) missing(name);
    } else if constexpr (std::is_same_v<M, double>) {
      value = parse_number(Op::kName, name, *text);
    } else if constexpr (std::is_same_v<M, std::int64_t>) {
      value = parse_integer(Op::kName, name, *text);
    } else if constexpr (std::is_same_v<M, bool>) {
      value = parse_bool(Op::kName, name, *text);
    } else {
      constexpr auto kNames = names_of(M{});
      value = static_cast<M>(parse_choice(Op::kName, name, *text, kNames));
    }
  }

  [[noreturn]] void missing(const std::string& attribute) {
    fail(ErrorKind::input, "{}: attribute '{}' is missing", Op::kName, attribute);
  }

  void refuse_unknown() {
    for (const auto& [name, tensor] : file_.tensors)
      if (!used_.contains(name)) fail(ErrorKind::input, "{}: there is no input field '{}'", Op::kName, name);
    for (const auto& [name, text] : file_.attributes)
      if (!used_attributes_.contains(name))
        fail(ErrorKind::input, "{}: there is no attribute '{}'", Op::kName, name);
  }

  template <class Entry>
  void allocate_output(const Entry& entry, const ErasedOp<Op>& erased) {
    if constexpr (std::is_same_v<Member<Entry>, View>) {
      if (entry.role != Role::out) return;
      const Shape shape = evaluate(Op::kName, entry.name, entry.shape, erased.dims, false);
      const DType type = output_type(entry.types, erased);
      std::int64_t elements = 1;
      for (const std::int64_t dim : shape.dims())
        if (dim < 0 || __builtin_mul_overflow(elements, dim, &elements) || elements > kMaxElements)
          fail(ErrorKind::input, "{}: output '{}' would have shape {}", Op::kName, entry.name,
               to_string(shape));
      const std::size_t bytes = static_cast<std::size_t>(elements) * size_bytes(type);
      Buffer& buffer = buffers_.emplace_back(backend_.allocate(bytes));
      const std::vector<std::byte> poison(bytes, std::byte{0xff});  // NaN, or -1
      backend_.upload(buffer.data(), poison.data(), bytes);
      op_.*entry.member = View(buffer.data(), type, shape);
    }
  }

  static DType output_type(TypeClass types, const ErasedOp<Op>& erased) {
    if (types == TypeClass::i32) return DType::i32;
    if (types == TypeClass::u8) return DType::u8;
    if (types == TypeClass::activation)
      for (const FieldView& field : erased.fields)
        if (field.role != Role::out && field.types == TypeClass::activation && field.present())
          return field.view.dtype;
    return DType::f32;
  }

  static constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;

  Backend& backend_;
  const OpFile& file_;  // only while constructing
  Op op_;
  std::vector<Buffer> buffers_;
  std::set<std::string, std::less<>> used_;
  std::set<std::string, std::less<>> used_attributes_;
};

}  // namespace

std::unique_ptr<BoundOp> bind(Backend& backend, std::string_view op, const OpFile& file) {
  std::unique_ptr<BoundOp> bound;
  find_op(op, [&]<class Op>() { bound = std::make_unique<TypedBoundOp<Op>>(backend, file); });
  return bound;
}

OpFile run_op(Backend& backend, std::string_view op, const OpFile& file) {
  const std::unique_ptr<BoundOp> bound = bind(backend, op, file);
  bound->run();
  return bound->outputs();
}

}  // namespace sluice::runner
