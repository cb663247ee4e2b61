// Runs a syntax tree.
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/runtime/runtime.h"
#include "jinja/syntax/ast.h"

namespace sluice::jinja {

// The names of one block. Macros keep pointing to the scope they were defined in.
struct Scope {
  const Scope* parent = nullptr;
  std::vector<std::pair<std::string_view, Value>> names;
  bool captured = false;

  const Value* find(std::string_view name) const;
  void set(std::string_view name, Value value);
};

class Interpreter {
 public:
  // If `now` is null, the template has no strftime_now.
  Interpreter(const Limits& limits, const Dict& variables, const std::tm* now);

  std::string render(const Body& body);
  // The line of a fault.
  int line() const { return line_; }
  Runtime& runtime() { return runtime_; }

  std::string call_macro(const Signature& signature, const Body& body, const Scope& scope, const Call& call);
  std::string call_loop(const Statement& statement, const Scope& scope, const Value& items, int depth);

 private:
  enum class Flow { next, leave, again };  // what break and continue do to the statements around them
  friend class InnerScope;

  Flow execute(const Body& body);
  Flow execute(const Statement& statement);
  Flow branch(const Statement& statement);
  Flow loop(const Statement& statement, const Value& items, int depth);
  Flow set_block(const Statement& statement);
  Flow filter_block(const Statement& statement);
  Flow with(const Statement& statement);
  void set(const Statement& statement);
  void macro(const Statement& statement);
  void call_block(const Statement& statement);
  Values loop_items(const Statement& statement, const Value& iterable);
  void assign(const Target& target, const Value& value);
  void write(std::string_view text);
  // Runs the body with output into a separate string.
  std::pair<Flow, std::string> capture(const Body& body);

  Value evaluate(const Expression& node);
  Value evaluate_kind(const Expression& node);
  Value name(const Expression& node);
  Value container(const Expression& node);
  Value dict(const Expression& node);
  Value slice(const Expression& node);
  Value call(const Expression& node, const Value* caller);
  Value filter(const Expression& node, const Value* subject);
  Value concat(const Expression& node);
  bool compare(const Expression& node);
  Value conditional(const Expression& node);
  Call arguments(const Arguments& arguments);
  void bind(const Signature& signature, const Call& call, std::vector<const Value*>& given, Scope& scope);

  void capture_scope();

  Runtime runtime_;
  Scope context_;
  Scope* scope_ = nullptr;
  std::vector<std::unique_ptr<Scope>> scopes_;
  std::vector<Scope*> free_scopes_;
  std::string* out_ = nullptr;
  int line_ = 1;
};

}  // namespace sluice::jinja
