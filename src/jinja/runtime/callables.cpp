#include "jinja/runtime/callables.h"

#include "jinja/operators.h"
#include "jinja/repr.h"

namespace sluice::jinja::runtime {

std::string Macro::repr(Budget&) const {
  return signature_.name.empty() ? "<Macro anonymous>" : "<Macro " + jinja::repr(signature_.name) + ">";
}

std::optional<Value> Macro::attribute(std::string_view name) const {
  if (name == "name") return signature_.name.empty() ? Value() : Value(signature_.name);
  if (name == "catch_kwargs") return Value(signature_.uses_kwargs);
  if (name == "catch_varargs") return Value(signature_.uses_varargs);
  if (name == "caller") return Value(signature_.uses_caller);
  if (name != "arguments") return std::nullopt;
  Values parameters;
  for (const std::string& parameter : signature_.parameters) parameters.emplace_back(parameter);
  return make_tuple(std::move(parameters));
}

Value Macro::call(const Call& call) {
  return Value(interpreter_.call_macro(signature_, body_, scope_, call));
}

std::string Loop::repr(Budget&) const {
  return fmt::format("<LoopContext {}/{}>", index_ + 1, items_.size());
}

std::optional<Value> Loop::attribute(std::string_view name) const {
  auto size = std::ssize(items_);
  if (name == "index") return Value(index_ + 1);
  if (name == "index0") return Value(index_);
  if (name == "revindex") return Value(size - index_);
  if (name == "revindex0") return Value(size - index_ - 1);
  if (name == "first") return Value(index_ == 0);
  if (name == "last") return Value(index_ + 1 == size);
  if (name == "length") return Value(size);
  if (name == "depth") return Value(std::int64_t{depth_} + 1);
  if (name == "depth0") return Value(std::int64_t{depth_});
  if (name == "previtem")
    return index_ > 0 ? items_[index_ - 1] : make_undefined("there is no previous item");
  if (name == "nextitem")
    return index_ + 1 < size ? items_[index_ + 1] : make_undefined("there is no next item");
  auto* self = const_cast<Loop*>(this);
  if (name == "cycle")
    return Value(interpreter_.runtime().make<Function>(
        "cycle", [self](const Call& call) { return self->cycle(call); }));
  if (name == "changed") {
    auto body = [self](const Call& call) { return Value(self->changed(call)); };
    return Value(interpreter_.runtime().make<Function>("changed", body));
  }
  return std::nullopt;
}

Value Loop::call(const Call& call) {
  if (!statement_.recursive) fault("The loop must have the 'recursive' marker to be called recursively.");
  if (call.args.size() != 1 || !call.named.empty()) fault("a recursive loop takes exactly one argument");
  return Value(interpreter_.call_loop(statement_, scope_, call.args[0], depth_ + 1));
}

Value Loop::cycle(const Call& call) const {
  if (call.args.empty()) fault("no items for cycling given");
  return call.args[index_ % call.args.size()];
}

bool Loop::changed(const Call& call) {
  Budget& budget = interpreter_.runtime().budget();
  if (last_changed_ && equal(budget, make_tuple(*last_changed_), make_tuple(call.args))) return false;
  last_changed_ = call.args;
  return true;
}

}  // namespace sluice::jinja::runtime
