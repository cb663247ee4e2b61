// The syntax tree of a template.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jinja/operators.h"
#include "jinja/value.h"

namespace sluice::jinja::syntax {

struct Expression;
struct Statement;
using ExpressionPtr = std::unique_ptr<Expression>;
using Body = std::vector<Statement>;

struct Arguments {
  std::vector<ExpressionPtr> args;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr spread_args, spread_named;  // *args, **kwargs
};

enum class ExpressionKind {
  constant,
  name,
  list,
  tuple,
  dict,       // operands: key, value, key, value, ...
  attribute,  // operands[0].text
  item,       // operands[0][operands[1]]
  slice,      // operands[0][operands[1]:operands[2]:operands[3]], the bounds may be null
  call,
  filter,  // operands[0] | text(arguments); operands[0] is null in a filter block
  test,    // operands[0] is text(arguments)
  negative,
  positive,
  inverse,  // not
  conjunction,
  disjunction,
  binary,
  concat,
  compare,      // operands[0] comparisons[0] operands[1] comparisons[1] ...
  conditional,  // operands: test, then, else (may be null)
};

struct Expression {
  ExpressionKind kind = ExpressionKind::constant;
  int line = 1;
  int nesting = 1;
  Value constant;
  std::string text;
  std::vector<ExpressionPtr> operands;
  Arguments arguments;
  Binary operation = Binary::add;
  std::vector<Comparison> comparisons;
};

// A name, a namespace attribute (name.attribute) or a tuple of targets.
struct Target {
  std::string name, attribute;
  std::vector<Target> parts;
};

// The parameters of a macro or call block; the flags say which special names its body uses.
struct Signature {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExpressionPtr> defaults;  // of the last parameters
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
};

enum class StatementKind {
  data,
  print,
  branch,  // branches: (test, body), the test of `else` is null
  loop,
  set,
  set_block,
  macro,
  call_block,
  filter_block,
  with,
  generation,
  loop_break,
  loop_continue,
};

struct Statement {
  StatementKind kind = StatementKind::data;
  int line = 1;
  std::string data;
  ExpressionPtr expression;  // printed, assigned, iterated over, called or filtered with
  ExpressionPtr condition;   // of a loop's items
  bool recursive = false;
  Target target;
  std::vector<std::pair<ExpressionPtr, Body>> branches;
  std::vector<std::pair<Target, ExpressionPtr>> bindings;  // of `with`
  Signature signature;
  Body body, otherwise;
};

}  // namespace sluice::jinja::syntax
