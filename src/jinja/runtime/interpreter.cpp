#include "jinja/runtime/interpreter.h"

#include "jinja/builtins/globals.h"
#include "jinja/operators.h"
#include "jinja/repr.h"
#include "jinja/runtime/callables.h"
#include "jinja/runtime/inner_scope.h"

namespace sluice::jinja::runtime {

using syntax::Body;
using syntax::Statement;
using syntax::StatementKind;

const Value* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent)
    for (const auto& [known, value] : scope->names)
      if (known == name) return &value;
  return nullptr;
}

void Scope::set(std::string_view name, Value value) {
  for (auto& [known, old] : names) {
    if (known == name) {
      old = std::move(value);
      return;
    }
  }
  names.emplace_back(name, std::move(value));
}

InnerScope::InnerScope(Interpreter& interpreter, const Scope* parent)
    : interpreter_(interpreter), outer_(interpreter.scope_) {
  if (interpreter.free_scopes_.empty()) {
    interpreter.runtime_.budget().grow(sizeof(Scope));
    interpreter.scopes_.push_back(std::make_unique<Scope>());
    interpreter.free_scopes_.push_back(interpreter.scopes_.back().get());
  }
  scope_ = interpreter.free_scopes_.back();
  interpreter.free_scopes_.pop_back();
  scope_->parent = parent;
  interpreter.scope_ = scope_;
}

InnerScope::~InnerScope() {
  interpreter_.scope_ = outer_;
  if (scope_->captured) return;
  scope_->names.clear();
  interpreter_.free_scopes_.push_back(scope_);
}

Interpreter::Interpreter(const Limits& limits, const Dict& variables, const std::tm* now) : runtime_(limits) {
  builtins::add_globals(runtime_, context_, now);
  for (const auto& [name, value] : variables.entries()) context_.set(name.text(), value);
}

std::string Interpreter::render(const Body& body) {
  std::string out;
  out_ = &out;
  InnerScope scope(*this, &context_);
  execute(body);
  return out;
}

void Interpreter::capture_scope() {
  for (Scope* scope = scope_; scope != nullptr && !scope->captured; scope = const_cast<Scope*>(scope->parent))
    scope->captured = true;
}

void Interpreter::write(std::string_view text) {
  runtime_.budget().grow(text.size());
  if (out_->size() + text.size() > runtime_.budget().limits().output_bytes)
    fault("the template renders more than {} bytes", runtime_.budget().limits().output_bytes);
  *out_ += text;
}

std::pair<Interpreter::Flow, std::string> Interpreter::capture(const Body& body) {
  std::string text;
  std::string* outer = std::exchange(out_, &text);
  Flow flow = execute(body);
  out_ = outer;
  return {flow, std::move(text)};
}

Interpreter::Flow Interpreter::execute(const Body& body) {
  DepthGuard guard(runtime_.budget());
  for (const Statement& statement : body) {
    runtime_.budget().step();
    line_ = statement.line;
    if (Flow flow = execute(statement); flow != Flow::next) return flow;
  }
  return Flow::next;
}

Interpreter::Flow Interpreter::execute(const Statement& statement) {
  switch (statement.kind) {
    case StatementKind::data:
      return write(statement.data), Flow::next;
    case StatementKind::print:
      return write(str(runtime_.budget(), evaluate(*statement.expression))), Flow::next;
    case StatementKind::branch:
      return branch(statement);
    case StatementKind::loop:
      if (!statement.recursive) return loop(statement, evaluate(*statement.expression), 0);
      write(call_loop(statement, *scope_, evaluate(*statement.expression), 0));
      return Flow::next;
    case StatementKind::set:
      return set(statement), Flow::next;
    case StatementKind::set_block:
      return set_block(statement);
    case StatementKind::macro:
      return macro(statement), Flow::next;
    case StatementKind::call_block:
      return call_block(statement), Flow::next;
    case StatementKind::filter_block:
      return filter_block(statement);
    case StatementKind::with:
      return with(statement);
    case StatementKind::generation: {
      InnerScope scope(*this);
      return execute(statement.body);
    }
    case StatementKind::loop_break:
      return Flow::leave;
    case StatementKind::loop_continue:
      return Flow::again;
  }
  return Flow::next;
}

Interpreter::Flow Interpreter::branch(const Statement& statement) {
  for (const auto& [test, body] : statement.branches)
    if (!test || truth(evaluate(*test))) return execute(body);
  return Flow::next;
}

Values Interpreter::loop_items(const Statement& statement, const Value& iterable) {
  Values items = iterate(runtime_.budget(), iterable);
  if (!statement.condition) return items;
  InnerScope scope(*this);
  Values kept;
  for (Value& item : items) {
    runtime_.budget().step();
    assign(statement.target, item);
    if (truth(evaluate(*statement.condition))) kept.push_back(std::move(item));
  }
  return kept;
}

Interpreter::Flow Interpreter::loop(const Statement& statement, const Value& iterable, int depth) {
  auto* loop = runtime_.make<Loop>(*this, statement, *scope_, loop_items(statement, iterable), depth);
  if (loop->items().empty() && !statement.otherwise.empty()) {
    InnerScope scope(*this);
    return execute(statement.otherwise);
  }
  InnerScope scope(*this);
  for (std::size_t i = 0; i < loop->items().size(); ++i) {
    runtime_.budget().step();
    scope->names.clear();
    loop->move_to(i);
    scope->set("loop", Value(loop));
    assign(statement.target, loop->items()[i]);
    if (execute(statement.body) == Flow::leave) break;
  }
  return Flow::next;
}

std::string Interpreter::call_loop(const Statement& statement, const Scope& scope, const Value& items,
                                   int depth) {
  capture_scope();  // the loop may be called after the block around it has ended
  std::string text;
  std::string* outer = std::exchange(out_, &text);
  {
    InnerScope inner(*this, &scope);
    capture_scope();
    loop(statement, items, depth);
  }
  out_ = outer;
  return text;
}

void Interpreter::assign(const syntax::Target& target, const Value& value) {
  if (!target.parts.empty()) {
    Values items = iterate(runtime_.budget(), value);
    if (items.size() < target.parts.size())
      fault("not enough values to unpack (expected {}, got {})", target.parts.size(), items.size());
    if (items.size() > target.parts.size())
      fault("too many values to unpack (expected {})", target.parts.size());
    for (std::size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i]);
  } else if (target.attribute.empty()) {
    scope_->set(target.name, value);
  } else {
    const Value* object = scope_->find(target.name);
    auto* space = object && object->is_object() ? dynamic_cast<Namespace*>(object->object()) : nullptr;
    if (space == nullptr) fault("cannot assign attribute on non-namespace object");
    space->set(target.attribute, value);
  }
}

void Interpreter::set(const Statement& statement) {
  assign(statement.target, evaluate(*statement.expression));
}

Interpreter::Flow Interpreter::set_block(const Statement& statement) {
  Value value;
  {
    InnerScope scope(*this);
    auto [flow, text] = capture(statement.body);
    if (flow != Flow::next) return flow;
    value = Value(std::move(text));
    if (statement.expression) value = filter(*statement.expression, &value);
  }
  assign(statement.target, value);
  return Flow::next;
}

Interpreter::Flow Interpreter::filter_block(const Statement& statement) {
  InnerScope scope(*this);
  auto [flow, text] = capture(statement.body);
  if (flow != Flow::next) return flow;
  Value value(std::move(text));
  write(str(runtime_.budget(), filter(*statement.expression, &value)));
  return Flow::next;
}

Interpreter::Flow Interpreter::with(const Statement& statement) {
  Values values;
  for (const auto& [target, expression] : statement.bindings) values.push_back(evaluate(*expression));
  InnerScope scope(*this);
  for (std::size_t i = 0; i < values.size(); ++i) assign(statement.bindings[i].first, values[i]);
  return execute(statement.body);
}

void Interpreter::macro(const Statement& statement) {
  capture_scope();
  auto* macro = runtime_.make<Macro>(*this, statement.signature, statement.body, *scope_);
  scope_->set(statement.signature.name, Value(macro));
}

void Interpreter::call_block(const Statement& statement) {
  capture_scope();
  Value caller(runtime_.make<Macro>(*this, statement.signature, statement.body, *scope_));
  write(str(runtime_.budget(), call(*statement.expression, &caller)));
}

}  // namespace sluice::jinja::runtime
