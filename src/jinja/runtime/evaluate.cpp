// Expressions and macro calls.
#include <algorithm>

#include "jinja/builtins/builtins.h"
#include "jinja/operators.h"
#include "jinja/repr.h"
#include "jinja/runtime/inner_scope.h"
#include "jinja/runtime/interpreter.h"

namespace sluice::jinja::runtime {
namespace {

using syntax::Expression;
using syntax::ExpressionKind;
using syntax::ExpressionPtr;

// The memory that a new value takes, without parts shared with others.
std::size_t own_size(const Value& value) {
  if (value.is_text()) return value.text().size();
  if (value.is_sequence()) return value.sequence().items.size() * sizeof(Value);
  if (value.is_dict()) return value.dict().size() * 4 * sizeof(Value);
  return 0;
}

}  // namespace

Value Interpreter::evaluate(const Expression& node) {
  DepthGuard guard(runtime_.budget());
  runtime_.budget().step();
  line_ = node.line;
  return evaluate_kind(node);
}

Value Interpreter::evaluate_kind(const Expression& node) {
  auto operand = [&](std::size_t i) { return evaluate(*node.operands[i]); };
  switch (node.kind) {
    case ExpressionKind::constant:
      return node.constant;
    case ExpressionKind::name:
      return name(node);
    case ExpressionKind::list:
    case ExpressionKind::tuple:
      return container(node);
    case ExpressionKind::dict:
      return dict(node);
    case ExpressionKind::attribute:
      return runtime_.attribute(operand(0), node.text);
    case ExpressionKind::item: {
      Value object = operand(0);
      return runtime_.item(object, operand(1));
    }
    case ExpressionKind::slice:
      return slice(node);
    case ExpressionKind::call:
      return call(node, nullptr);
    case ExpressionKind::filter:
      return filter(node, nullptr);
    case ExpressionKind::test: {
      Value subject = operand(0);
      return runtime_.test(node.text, subject, arguments(node.arguments));
    }
    case ExpressionKind::negative:
      return negate(operand(0));
    case ExpressionKind::positive: {
      Value value = operand(0);
      require_defined(value);
      if (!value.is_number()) fault("bad operand type for unary +: '{}'", type_name(value));
      return value.is_boolean() ? Value(value.integer()) : value;
    }
    case ExpressionKind::inverse:
      return !truth(operand(0));
    case ExpressionKind::conjunction: {
      Value left = operand(0);
      return truth(left) ? operand(1) : left;
    }
    case ExpressionKind::disjunction: {
      Value left = operand(0);
      return truth(left) ? left : operand(1);
    }
    case ExpressionKind::binary: {
      Value left = operand(0);
      return binary(runtime_.budget(), node.operation, left, operand(1));
    }
    case ExpressionKind::concat:
      return concat(node);
    case ExpressionKind::compare:
      return compare(node);
    case ExpressionKind::conditional:
      return conditional(node);
  }
  return {};
}

Value Interpreter::name(const Expression& node) {
  if (const Value* value = scope_->find(node.text)) return *value;
  return make_undefined(repr(node.text) + " is undefined");
}

Value Interpreter::container(const Expression& node) {
  Values items;
  for (const ExpressionPtr& operand : node.operands) items.push_back(evaluate(*operand));
  runtime_.budget().grow(items.size() * sizeof(Value));
  return node.kind == ExpressionKind::list ? make_list(std::move(items)) : make_tuple(std::move(items));
}

Value Interpreter::dict(const Expression& node) {
  Dict result;
  for (std::size_t i = 0; i < node.operands.size(); i += 2) {
    Value key = evaluate(*node.operands[i]);
    result.set(key, evaluate(*node.operands[i + 1]));
  }
  runtime_.budget().grow(result.size() * 4 * sizeof(Value));
  return make_dict(std::move(result));
}

Value Interpreter::slice(const Expression& node) {
  Value values[4];
  for (std::size_t i = 0; i < 4; ++i)
    if (node.operands[i]) values[i] = evaluate(*node.operands[i]);
  return jinja::slice(runtime_.budget(), values[0], values[1], values[2], values[3]);
}

Call Interpreter::arguments(const syntax::Arguments& arguments) {
  Call call;
  Budget& budget = runtime_.budget();
  for (const ExpressionPtr& argument : arguments.args) call.args.push_back(evaluate(*argument));
  for (const auto& [name, argument] : arguments.named) call.named.emplace_back(name, evaluate(*argument));
  if (arguments.spread_args)
    for (Value& item : iterate(budget, evaluate(*arguments.spread_args)))
      call.args.push_back(std::move(item));
  if (!arguments.spread_named) return call;
  Value named = evaluate(*arguments.spread_named);
  if (!named.is_dict()) fault("argument after ** must be a mapping, not {}", type_name(named));
  for (const auto& [name, value] : named.dict().entries()) {
    if (!name.is_text()) fault("keywords must be strings");
    call.named.emplace_back(name.text(), value);
  }
  return call;
}

// A method is called directly, without creating an object that binds it.
Value Interpreter::call(const Expression& node, const Value* caller) {
  const Expression& callee = *node.operands[0];
  Value subject, function;
  const builtins::Builtin* method = nullptr;
  if (callee.kind == ExpressionKind::attribute) {
    subject = evaluate(*callee.operands[0]);
    method = builtins::find_method(subject, callee.text);
    if (method == nullptr) function = runtime_.attribute(subject, callee.text);
  } else {
    function = evaluate(callee);
  }
  Call given = arguments(node.arguments);
  if (caller != nullptr) given.named.emplace_back("caller", *caller);
  line_ = node.line;
  Value result = method ? (*method)(runtime_, subject, given) : runtime_.call(function, given);
  runtime_.budget().grow(own_size(result));
  return result;
}

// In a filter block the innermost filter applies to the block's text, which is `subject`.
Value Interpreter::filter(const Expression& node, const Value* subject) {
  DepthGuard guard(runtime_.budget());
  Value input;
  if (!node.operands[0])
    input = *subject;
  else if (node.operands[0]->kind == ExpressionKind::filter)
    input = filter(*node.operands[0], subject);
  else
    input = evaluate(*node.operands[0]);
  Call given = arguments(node.arguments);
  line_ = node.line;
  Value result = runtime_.filter(node.text, input, given);
  runtime_.budget().grow(own_size(result));
  return result;
}

Value Interpreter::concat(const Expression& node) {
  std::string text;
  for (const ExpressionPtr& operand : node.operands) {
    text += str(runtime_.budget(), evaluate(*operand));
    if (text.size() > runtime_.budget().limits().output_bytes) break;
  }
  runtime_.budget().grow(text.size());
  return Value(std::move(text));
}

bool Interpreter::compare(const Expression& node) {
  Value left = evaluate(*node.operands[0]);
  for (std::size_t i = 0; i < node.comparisons.size(); ++i) {
    Value right = evaluate(*node.operands[i + 1]);
    if (!jinja::compare(runtime_.budget(), node.comparisons[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::conditional(const Expression& node) {
  if (truth(evaluate(*node.operands[0]))) return evaluate(*node.operands[1]);
  if (node.operands[2]) return evaluate(*node.operands[2]);
  return make_undefined(fmt::format(
      "the inline if-expression on line {} evaluated to false and no else section was defined.", node.line));
}

// Parameters take positional arguments, then named ones, then defaults; the special names take the rest.
std::string Interpreter::call_macro(const syntax::Signature& signature, const syntax::Body& body,
                                    const Scope& parent, const Call& call) {
  const auto& parameters = signature.parameters;
  std::vector<const Value*> given(parameters.size(), nullptr);
  for (std::size_t i = 0; i < std::min(call.args.size(), given.size()); ++i) given[i] = &call.args[i];
  InnerScope scope(*this, &parent);
  bind(signature, call, given, *scope);
  std::size_t first_default = parameters.size() - signature.defaults.size();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Value value;
    if (given[i] != nullptr)
      value = *given[i];
    else if (i >= first_default)
      value = evaluate(*signature.defaults[i - first_default]);
    else
      value = make_undefined(fmt::format("parameter {} was not provided", repr(parameters[i])));
    scope->set(parameters[i], std::move(value));
  }
  return capture(body).second;
}

void Interpreter::bind(const syntax::Signature& signature, const Call& call, std::vector<const Value*>& given,
                       Scope& scope) {
  const auto& parameters = signature.parameters;
  Value caller = make_undefined("No caller defined");
  Dict kwargs;
  for (const auto& [name, value] : call.named) {
    auto known =
        std::find(parameters.begin() + std::min(call.args.size(), parameters.size()), parameters.end(), name);
    if (known != parameters.end())
      given[known - parameters.begin()] = &value;
    else if (name == "caller" && signature.uses_caller)
      caller = value;
    else if (signature.uses_kwargs)
      kwargs.set(Value(name), value);
    else
      fault("macro {} takes no keyword argument {}", repr(signature.name), repr(name));
  }
  if (signature.uses_caller) scope.set("caller", std::move(caller));
  if (signature.uses_kwargs) scope.set("kwargs", make_dict(std::move(kwargs)));
  if (call.args.size() > parameters.size() && !signature.uses_varargs)
    fault("macro {} takes not more than {} argument(s)", repr(signature.name), parameters.size());
  if (!signature.uses_varargs) return;
  Values rest(call.args.begin() + std::min(call.args.size(), parameters.size()), call.args.end());
  scope.set("varargs", make_tuple(std::move(rest)));
}

}  // namespace sluice::jinja::runtime
