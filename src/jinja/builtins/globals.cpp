#include "jinja/builtins/globals.h"

#include "base/error.h"
#include "jinja/builtins/parameters.h"
#include "jinja/operators.h"
#include "jinja/repr.h"

namespace sluice::jinja::builtins {
namespace {

Value range(const Call& call) {
  Parameters given(call, {"start", "stop", "step"}, 1);
  std::int64_t first = given.integer(0, 0);
  if (given.find(1) == nullptr) return make_range(0, first, 1);
  return make_range(first, given.integer(1, 0), given.integer(2, 1));
}

// dict(mapping or pairs, name=value, ...)
Dict dict(Runtime& runtime, const Call& call) {
  if (call.args.size() > 1) fault("dict expected at most 1 argument, got {}", call.args.size());
  Budget& budget = runtime.budget();
  Dict result;
  if (!call.args.empty() && call.args[0].is_dict()) {
    result = call.args[0].dict();
    budget.grow(result.size() * 2 * sizeof(Value));
  } else if (!call.args.empty()) {
    for (const Value& pair : iterate(budget, call.args[0])) {
      Values items = iterate(budget, pair);
      if (items.size() != 2)
        fault("dictionary update sequence element has length {}; 2 is required", items.size());
      result.set(items[0], items[1]);
    }
  }
  for (const auto& [name, value] : call.named) result.set(Value(name), value);
  return result;
}

Value make_namespace(Runtime& runtime, const Call& call) {
  auto* result = runtime.make<Namespace>();
  Dict attributes = dict(runtime, call);
  for (const auto& [name, value] : attributes.entries()) {
    if (!name.is_text()) fault("the attributes of a namespace are named by strings, not {}", type_name(name));
    result->set(name.text(), value);
  }
  return Value(result);
}

// cycler('a', 'b'): returns the next one at each call, and starts over after the last.
class Cycler final : public Object {
 public:
  Cycler(Runtime& runtime, Values items) : runtime_(runtime), items_(std::move(items)) {
    if (items_.empty()) fault("at least one item has to be provided");
  }
  std::string type_name() const override { return "Cycler"; }
  std::string repr(Budget&) const override { return "<jinja2.utils.Cycler object>"; }
  std::optional<Value> attribute(std::string_view name) const override {
    if (name == "current") return items_[at_];
    auto* self = const_cast<Cycler*>(this);
    if (name == "next")
      return Value(runtime_.make<Function>("next", [self](const Call&) { return self->next(); }));
    if (name == "reset")
      return Value(runtime_.make<Function>("reset", [self](const Call&) {
        self->at_ = 0;
        return Value();
      }));
    return std::nullopt;
  }

 private:
  Value next() {
    const Value current = items_[at_];
    at_ = (at_ + 1) % items_.size();
    return current;
  }

  Runtime& runtime_;
  Values items_;
  std::size_t at_ = 0;
};

// joiner(', '): returns nothing the first time, then the separator.
Value joiner(Runtime& runtime, const Call& call) {
  Parameters given(call, {"sep"});
  const Value separator = given.find(0) ? given.value(0) : Value(", ");
  auto used = std::make_shared<bool>(false);
  return Value(runtime.make<Function>("joiner", [separator, used](const Call&) {
    return std::exchange(*used, true) ? separator : Value("");
  }));
}

Value raise_exception(Runtime& runtime, const Call& call) {
  Parameters given(call, {"message"}, 1);
  throw Error(ErrorKind::input, str(runtime.budget(), given.value(0)));
}

Value strftime_now(const std::tm& now, const Call& call) {
  const std::string format = Parameters(call, {"format"}, 1).text(0);
  constexpr std::size_t kMaxFormat = 1024, kMaxResult = 64 * kMaxFormat;
  if (format.size() > kMaxFormat)
    fault("a time format has at most {} bytes, not {}", kMaxFormat, format.size());
  // strftime returns 0 both for an empty result and for one that does not fit; a leading blank distinguishes
  // the two.
  std::string text(kMaxResult, '\0');
  std::size_t size = std::strftime(text.data(), text.size(), (" " + format).c_str(), &now);
  if (size == 0) fault("the time format {} gives more than {} bytes", repr(format), kMaxResult);
  return Value(text.substr(1, size - 1));
}

}  // namespace

void add_globals(Runtime& runtime, runtime::Scope& scope, const std::tm* now) {
  auto add = [&](std::string_view name, auto body) {
    scope.set(name, Value(runtime.make<Function>(std::string(name), body)));
  };
  add("range", [](const Call& call) { return range(call); });
  add("dict", [&runtime](const Call& call) { return make_dict(dict(runtime, call)); });
  add("namespace", [&runtime](const Call& call) { return make_namespace(runtime, call); });
  add("cycler", [&runtime](const Call& call) { return Value(runtime.make<Cycler>(runtime, call.args)); });
  add("joiner", [&runtime](const Call& call) { return joiner(runtime, call); });
  add("raise_exception", [&runtime](const Call& call) { return raise_exception(runtime, call); });
  add("lipsum",
      [](const Call&) -> Value { fault("lipsum() gives other text every time, which no prompt can use"); });
  if (now != nullptr)
    add("strftime_now", [time = *now](const Call& call) { return strftime_now(time, call); });
}

}  // namespace sluice::jinja::builtins
