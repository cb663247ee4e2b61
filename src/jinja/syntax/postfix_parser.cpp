// What may follow a primary expression: subscripts, calls, filters and tests.
#include "jinja/syntax/expression_parser.h"

namespace sluice::jinja::syntax {

ExpressionPtr ExpressionParser::postfix(ExpressionPtr node) {
  while (true) {
    if (is_op(".") || is_op("["))
      node = subscript(std::move(node));
    else if (is_op("("))
      node = call(std::move(node));
    else
      return node;
  }
}

ExpressionPtr ExpressionParser::filter_chain(ExpressionPtr node) {
  while (true) {
    if (is_op("|"))
      node = filters(std::move(node));
    else if (is_name("is"))
      node = test(std::move(node));
    else if (is_op("("))
      node = call(std::move(node));
    else
      return node;
  }
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr node) {
  Token open = take();
  if (open.text == "[") return slice_or_index(std::move(node));
  Token key = take();
  if (key.kind == TokenKind::name) {
    ExpressionPtr result = make(ExpressionKind::attribute, open.line, std::move(node));
    result->text = key.text;
    return result;
  }
  if (key.kind != TokenKind::literal || !key.value.is_integer()) bad("expected name or number");
  return make(ExpressionKind::item, open.line, std::move(node), literal(key.value, key.line));
}

ExpressionPtr ExpressionParser::slice_or_index(ExpressionPtr node) {
  int line = current().line;
  std::vector<ExpressionPtr> operands(4);
  operands[0] = std::move(node);
  if (!is_op(":")) operands[1] = expression();
  if (skip_op("]")) {
    operands.resize(2);
    return make(ExpressionKind::item, line, std::move(operands));
  }
  expect_op(":");
  if (!is_op(":") && !is_op("]")) operands[2] = expression();
  if (skip_op(":") && !is_op("]")) operands[3] = expression();
  expect_op("]");
  return make(ExpressionKind::slice, line, std::move(operands));
}

void ExpressionParser::argument(Arguments& result) {
  auto ensure = [&](bool allowed) {
    if (!allowed) bad("invalid syntax for function call expression");
  };
  if (skip_op("*")) {
    ensure(!result.spread_args && !result.spread_named);
    result.spread_args = expression();
  } else if (skip_op("**")) {
    ensure(!result.spread_named);
    result.spread_named = expression();
  } else if (current().kind == TokenKind::name && look().kind == TokenKind::op && look().text == "=") {
    ensure(!result.spread_named);
    std::string name = take().text;
    take();
    result.named.emplace_back(std::move(name), expression());
  } else {
    ensure(!result.spread_args && !result.spread_named && result.named.empty());
    result.args.push_back(expression());
  }
}

Arguments ExpressionParser::arguments() {
  Arguments result;
  expect_op("(");
  while (!is_op(")")) {
    argument(result);
    if (!is_op(")")) expect_op(",");
  }
  take();
  return result;
}

ExpressionPtr ExpressionParser::call(ExpressionPtr node) {
  ExpressionPtr result = make(ExpressionKind::call, current().line, std::move(node));
  adopt(*result, arguments());
  return result;
}

std::string ExpressionParser::dotted_name() {
  std::string name = expect_name();
  while (skip_op(".")) name += "." + expect_name();
  return name;
}

ExpressionPtr ExpressionParser::filters(ExpressionPtr node, bool inline_first) {
  while (inline_first || is_op("|")) {
    if (!inline_first) take();
    inline_first = false;
    int line = current().line;
    std::string name = dotted_name();
    node = make(ExpressionKind::filter, line, std::move(node));
    node->text = std::move(name);
    if (is_op("(")) adopt(*node, arguments());
  }
  return node;
}

ExpressionPtr ExpressionParser::test(ExpressionPtr node) {
  int line = take().line;
  bool negated = skip_name("not");
  std::string name = dotted_name();
  node = make(ExpressionKind::test, line, std::move(node));
  node->text = std::move(name);
  bool operand_follows =
      current().kind == TokenKind::name || current().kind == TokenKind::literal || is_op("[") || is_op("{");
  if (is_op("(")) {
    adopt(*node, arguments());
  } else if (operand_follows && !is_name("else") && !is_name("or") && !is_name("and")) {
    if (is_name("is")) bad("You cannot chain multiple tests with is");
    Arguments one;
    one.args.push_back(postfix(primary()));
    adopt(*node, std::move(one));
  }
  return negated ? make(ExpressionKind::inverse, line, std::move(node)) : std::move(node);
}

}  // namespace sluice::jinja::syntax
