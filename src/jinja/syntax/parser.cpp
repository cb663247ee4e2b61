#include "jinja/syntax/parser.h"

#include <algorithm>

#include "jinja/syntax/expression_parser.h"

namespace sluice::jinja::syntax {
namespace {

class Parser final : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Body run() {
    Body body = statements({});
    if (current().kind != TokenKind::end) bad("unexpected end tag");
    return body;
  }

 private:
  using Names = std::initializer_list<std::string_view>;

  static std::string listed(Names names) {
    std::string text;
    for (std::string_view name : names) text += (text.empty() ? "'" : " or '") + std::string(name) + "'";
    return text;
  }

  // Parses up to the tag that one of `ends` opens, which becomes the current token.
  Body statements(Names ends) {
    Nested nested(*this);
    Body body;
    while (current().kind != TokenKind::end) {
      int line = current().line;
      if (current().kind == TokenKind::data) {
        body.push_back(make(StatementKind::data, line));
        body.back().data = take().text;
      } else if (current().kind == TokenKind::variable_begin) {
        take();
        body.push_back(make(StatementKind::print, line));
        body.back().expression = tuple();
        expect(TokenKind::variable_end);
      } else {
        expect(TokenKind::block_begin);
        if (std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return is_name(end); }))
          return body;
        body.push_back(statement(ends));
        expect(TokenKind::block_end);
      }
    }
    if (ends.size() > 0)
      bad("Unexpected end of template. Jinja was looking for the following tags: " + listed(ends) + ".");
    return body;
  }

  // Parses the body of a tag after its head, including the end tag's name.
  Body body(std::string_view end) {
    Body result = body_until({end});
    take();
    return result;
  }

  Body body_until(Names ends) {
    skip_op(":");
    expect(TokenKind::block_end);
    return statements(ends);
  }

  static Statement make(StatementKind kind, int line) {
    Statement statement;
    statement.kind = kind;
    statement.line = line;
    return statement;
  }

  Statement statement(Names ends) {
    if (current().kind != TokenKind::name) bad("tag name expected");
    Token tag = take();
    const std::string& name = tag.text;
    if (name == "if") return branch(tag.line);
    if (name == "for") return loop(tag.line);
    if (name == "set") return set(tag.line);
    if (name == "macro") return macro(tag.line);
    if (name == "call") return call_block(tag.line);
    if (name == "filter") return filter_block(tag.line);
    if (name == "with") return with(tag.line);
    if (name == "generation") return generation(tag.line);
    if (name == "break" || name == "continue") {
      if (loops_ == 0) bad(fmt::format("'{}' outside loop", name));
      return make(name == "break" ? StatementKind::loop_break : StatementKind::loop_continue, tag.line);
    }
    throw SyntaxFault(
        tag.line,
        "Encountered unknown tag '" + name + "'." +
            (ends.size() > 0 ? " Jinja was looking for the following tags: " + listed(ends) + "." : ""));
  }

  Statement branch(int line) {
    Statement node = make(StatementKind::branch, line);
    while (true) {
      ExpressionPtr test = tuple(false);
      node.branches.emplace_back(std::move(test), body_until({"elif", "else", "endif"}));
      std::string end = take().text;
      if (end == "elif") continue;
      if (end == "else") node.branches.emplace_back(nullptr, body("endif"));
      return node;
    }
  }

  Statement loop(int line) {
    Statement node = make(StatementKind::loop, line);
    node.target = target("in", false);
    if (!skip_name("in")) unexpected("in");
    node.expression = tuple(false);
    if (skip_name("if")) node.condition = expression();
    node.recursive = skip_name("recursive");
    ++loops_;
    node.body = body_until({"endfor", "else"});
    --loops_;
    if (take().text == "else") node.otherwise = body("endfor");
    return node;
  }

  Target target(std::string_view end, bool namespaces) {
    Target result;
    bool is_tuple = false;
    while (
        !(!result.parts.empty() && (is_name(end) || current().kind == TokenKind::block_end || is_op("=")))) {
      result.parts.push_back(one_target(namespaces));
      if (!skip_op(",")) break;
      is_tuple = true;
    }
    if (is_tuple) return result;
    Target only = std::move(result.parts[0]);
    return only;
  }

  Target one_target(bool namespaces) {
    Nested nested(*this);
    if (skip_op("(")) {
      Target result;
      do {
        if (is_op(")")) break;
        result.parts.push_back(one_target(namespaces));
      } while (skip_op(","));
      expect_op(")");
      if (result.parts.empty()) bad("can't assign to 'tuple'");
      return result;
    }
    Target result = {expect_assignable(), {}, {}};
    if (namespaces && skip_op(".")) result.attribute = expect_name();
    return result;
  }

  std::string expect_assignable() {
    if (current().kind != TokenKind::name) bad("can't assign to an expression");
    constexpr std::string_view kReserved[] = {"true", "false", "none", "True", "False", "None"};
    for (std::string_view reserved : kReserved)
      if (is_name(reserved)) bad("can't assign to 'const'");
    return take().text;
  }

  Statement set(int line) {
    Statement node = make(StatementKind::set, line);
    node.target = target("=", true);
    if (skip_op("=")) {
      node.expression = tuple();
      return node;
    }
    node.kind = StatementKind::set_block;
    node.expression = filters(nullptr);
    node.body = body("endset");
    return node;
  }

  void parameters(Signature& signature) {
    expect_op("(");
    while (!is_op(")")) {
      if (!signature.parameters.empty()) expect_op(",");
      signature.parameters.push_back(expect_assignable());
      if (skip_op("="))
        signature.defaults.push_back(expression());
      else if (!signature.defaults.empty())
        bad("non-default argument follows default argument");
    }
    take();
  }

  // Parses a body that runs as a function: enclosing loops cannot be left from inside, and it may use the
  // special names.
  Body function_body(Signature& signature, std::string_view end) {
    auto takes = [&](std::string_view name) {
      return std::find(signature.parameters.begin(), signature.parameters.end(), name) !=
             signature.parameters.end();
    };
    int loops = std::exchange(loops_, 0);
    functions_.push_back({});
    Body result = body(end);
    Uses uses = functions_.back();
    functions_.pop_back();
    loops_ = loops;
    signature.uses_caller = uses.caller && !takes("caller");
    signature.uses_varargs = uses.varargs && !takes("varargs");
    signature.uses_kwargs = uses.kwargs && !takes("kwargs");
    return result;
  }

  Statement macro(int line) {
    Statement node = make(StatementKind::macro, line);
    node.signature.name = expect_assignable();
    parameters(node.signature);
    node.body = function_body(node.signature, "endmacro");
    return node;
  }

  Statement call_block(int line) {
    Statement node = make(StatementKind::call_block, line);
    if (is_op("(")) parameters(node.signature);
    node.expression = expression();
    if (node.expression->kind != ExpressionKind::call) bad("expected call");
    node.body = function_body(node.signature, "endcall");
    return node;
  }

  Statement filter_block(int line) {
    Statement node = make(StatementKind::filter_block, line);
    node.expression = filters(nullptr, true);
    node.body = body("endfilter");
    return node;
  }

  Statement with(int line) {
    Statement node = make(StatementKind::with, line);
    while (current().kind != TokenKind::block_end && !is_op(":")) {
      if (!node.bindings.empty()) expect_op(",");
      Target name = target("=", false);
      expect_op("=");
      node.bindings.emplace_back(std::move(name), expression());
    }
    node.body = body("endwith");
    return node;
  }

  Statement generation(int line) {
    Statement node = make(StatementKind::generation, line);
    node.body = function_body(node.signature, "endgeneration");
    return node;
  }

  void on_name(const std::string& name) override {
    for (Uses& uses : functions_) {
      uses.caller |= name == "caller";
      uses.varargs |= name == "varargs";
      uses.kwargs |= name == "kwargs";
    }
  }

  struct Uses {
    bool caller = false, varargs = false, kwargs = false;
  };
  std::vector<Uses> functions_;  // the enclosing macros and call blocks of the current token
  int loops_ = 0;                // the enclosing loops, inside the innermost of those
};

}  // namespace

Body parse(std::string_view source) {
  return Parser(tokenize(source)).run();
}

}  // namespace sluice::jinja::syntax
