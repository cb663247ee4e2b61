// Runs a syntax tree.
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/runtime.h"
#include "jinja/syntax/ast.h"

namespace sluice::jinja::runtime {

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

  std::string render(const syntax::Body& body);
  // The line of a fault.
  int line() const { return line_; }
  Runtime& runtime() { return runtime_; }

  std::string call_macro(const syntax::Signature& signature, const syntax::Body& body, const Scope& scope,
                         const Call& call);
  std::string call_loop(const syntax::Statement& statement, const Scope& scope, const Value& items,
                        int depth);

 private:
  enum class Flow { next, leave, again };  // what break and continue do to the statements around them
  friend class InnerScope;

  Flow execute(const syntax::Body& body);
  Flow execute(const syntax::Statement& statement);
  Flow branch(const syntax::Statement& statement);
  Flow loop(const syntax::Statement& statement, const Value& items, int depth);
  Flow set_block(const syntax::Statement& statement);
  Flow filter_block(const syntax::Statement& statement);
  Flow with(const syntax::Statement& statement);
  void set(const syntax::Statement& statement);
  void macro(const syntax::Statement& statement);
  void call_block(const syntax::Statement& statement);
  Values loop_items(const syntax::Statement& statement, const Value& iterable);
  void assign(const syntax::Target& target, const Value& value);
  void write(std::string_view text);
  // Runs the body with output into a separate string.
  std::pair<Flow, std::string> capture(const syntax::Body& body);

  Value evaluate(const syntax::Expression& node);
  Value evaluate_kind(const syntax::Expression& node);
  Value name(const syntax::Expression& node);
  Value container(const syntax::Expression& node);
  Value dict(const syntax::Expression& node);
  Value slice(const syntax::Expression& node);
  Value call(const syntax::Expression& node, const Value* caller);
  Value filter(const syntax::Expression& node, const Value* subject);
  Value concat(const syntax::Expression& node);
  bool compare(const syntax::Expression& node);
  Value conditional(const syntax::Expression& node);
  Call arguments(const syntax::Arguments& arguments);
  void bind(const syntax::Signature& signature, const Call& call, std::vector<const Value*>& given,
            Scope& scope);

  void capture_scope();

  Runtime runtime_;
  Scope context_;
  Scope* scope_ = nullptr;
  std::vector<std::unique_ptr<Scope>> scopes_;
  std::vector<Scope*> free_scopes_;
  std::string* out_ = nullptr;
  int line_ = 1;
};

}  // namespace sluice::jinja::runtime
