#include "runner/bound_op.h"

#include "ops/erase.h"
#include "runner/binding.h"
#include "runner/find_op.h"

namespace sluice::runner {

void BoundOp::run() {
  enqueue();
  backend_.synchronize();
}

OpFile BoundOp::outputs() {
  OpFile result;
  for (const auto& [name, view] : written_) {
    HostTensor tensor(view.dtype, view.shape);
    backend_.download(tensor.bytes.data(), view.data, tensor.bytes.size());
    result.tensors.emplace(name, std::move(tensor));
  }
  return result;
}

namespace {

template <class Op, class M>
void bind_entry(Binding& binding, Op& op, const ops::Field<Op, M>& field) {
  if constexpr (std::is_same_v<M, ops::Weight>)
    op.*field.member = binding.weight(field.name);
  else if constexpr (std::is_same_v<M, ops::ExpertWeights>)
    (op.*field.member).stack = binding.weight(field.name);
  else if constexpr (std::is_same_v<M, ops::ConstView>)
    op.*field.member = binding.input(field.name);
  else if (field.role != ops::Role::out)
    op.*field.member = binding.updated(field.name);
}

template <class Op, class M>
void bind_entry(Binding& binding, Op& op, const ops::Attribute<Op, M>& attribute) {
  const AttributeName name{attribute.name, attribute.required};
  if constexpr (std::is_enum_v<M>) {
    constexpr auto kNames = names_of(M{});
    if (const auto index = binding.choice(name, kNames)) op.*attribute.member = static_cast<M>(*index);
  } else {
    binding.read(name, op.*attribute.member);
  }
}

template <class Op>
class TypedBoundOp final : public BoundOp {
 public:
  TypedBoundOp(ops::Backend& backend, const OpArguments& arguments, Inputs inputs) : BoundOp(backend) {
    Binding binding(backend, Op::kName, arguments, inputs, buffers_);
    ops::for_each_entry<Op>([&](const auto& entry) { bind_entry(binding, op_, entry); });
    binding.refuse_unknown();
    ops::check_attributes(op_);
    ops::ErasedOp<Op> erased(op_);
    ops::check_inputs(Op::kName, erased.fields, erased.pooled, false, erased.dims);
    std::size_t at = 0;
    ops::for_each_entry<Op>([&](const auto& entry) {
      using Entry = std::remove_cvref_t<decltype(entry)>;
      if constexpr (std::is_same_v<ops::Member<Entry>, ops::View>) {
        ops::View& view = op_.*entry.member;
        if (entry.role == ops::Role::out)
          view = binding.output(erased.fields[at], erased.fields, erased.dims);
        if (view.present()) written_.emplace_back(entry.name, view);
      }
      if constexpr (ops::kIsField<Entry>) ++at;
    });
    ops::check(op_, false);  // shapes; the backend checks contents before it runs
  }

  void enqueue() override { backend_.run(op_); }

 private:
  Op op_;
};

std::unique_ptr<BoundOp> bind_arguments(ops::Backend& backend, std::string_view op,
                                        const OpArguments& arguments, Inputs inputs) {
  std::unique_ptr<BoundOp> bound;
  find_op(op, [&]<class Op>() { bound = std::make_unique<TypedBoundOp<Op>>(backend, arguments, inputs); });
  return bound;
}

}  // namespace

std::unique_ptr<BoundOp> bind(ops::Backend& backend, std::string_view op, const OpFile& file) {
  OpArguments arguments{.tensors = {}, .attributes = file.attributes};
  for (const auto& [name, tensor] : file.tensors)
    arguments.tensors.emplace(name, ops::ConstView(tensor.bytes.data(), tensor.dtype, tensor.shape));
  return bind_arguments(backend, op, arguments, Inputs::copied);
}

OpFile run_op(ops::Backend& backend, std::string_view op, const OpFile& file) {
  const std::unique_ptr<BoundOp> bound = bind(backend, op, file);
  bound->run();
  return bound->outputs();
}

}  // namespace sluice::runner

namespace sluice {

OpResult run_op(ops::Backend& backend, std::string_view op, const OpArguments& arguments) {
  std::shared_ptr<runner::BoundOp> bound =
      runner::bind_arguments(backend, op, arguments, runner::Inputs::borrowed);
  bound->run();
  OpResult result;
  for (const auto& [name, view] : bound->written()) result.fields.emplace_back(name, view);
  result.memory = std::move(bound);
  return result;
}

}  // namespace sluice
