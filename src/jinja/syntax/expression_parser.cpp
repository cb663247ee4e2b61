#include "jinja/syntax/expression_parser.h"

#include <algorithm>

namespace sluice::jinja::syntax {
namespace {

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::data:
      return "template data";
    case TokenKind::variable_begin:
      return "begin of print statement";
    case TokenKind::variable_end:
      return "end of print statement";
    case TokenKind::block_begin:
      return "begin of statement block";
    case TokenKind::block_end:
      return "end of statement block";
    case TokenKind::literal:
      return "literal";
    case TokenKind::end:
      return "end of template";
    default:
      return token.text;
  }
}

std::optional<Comparison> comparison_of(std::string_view op) {
  if (op == "==") return Comparison::equal;
  if (op == "!=") return Comparison::not_equal;
  if (op == "<") return Comparison::less;
  if (op == "<=") return Comparison::less_equal;
  if (op == ">") return Comparison::greater;
  if (op == ">=") return Comparison::greater_equal;
  return std::nullopt;
}

}  // namespace

Token ExpressionParser::take() {
  Token token = current();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool ExpressionParser::skip_op(std::string_view op) {
  return is_op(op) && (take(), true);
}
bool ExpressionParser::skip_name(std::string_view name) {
  return is_name(name) && (take(), true);
}

void ExpressionParser::unexpected(std::string_view wanted) const {
  bad(fmt::format("expected token '{}', got '{}'", wanted, describe(current())));
}

void ExpressionParser::expect_op(std::string_view op) {
  if (!skip_op(op)) unexpected(op);
}

std::string ExpressionParser::expect_name() {
  if (current().kind != TokenKind::name) unexpected("name");
  return take().text;
}

void ExpressionParser::expect(TokenKind kind) {
  if (current().kind != kind) unexpected(describe(Token{kind, 0, {}, {}}));
  take();
}

ExpressionPtr ExpressionParser::make(ExpressionKind kind, int line, std::vector<ExpressionPtr> operands) {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->line = line;
  for (const ExpressionPtr& operand : operands)
    if (operand) node->nesting = std::max(node->nesting, operand->nesting + 1);
  if (node->nesting > kMaxNesting) bad("the expression nests too deeply");
  node->operands = std::move(operands);
  return node;
}

ExpressionPtr ExpressionParser::make(ExpressionKind kind, int line, ExpressionPtr a, ExpressionPtr b) {
  std::vector<ExpressionPtr> operands;
  operands.push_back(std::move(a));
  if (b) operands.push_back(std::move(b));
  return make(kind, line, std::move(operands));
}

ExpressionPtr ExpressionParser::literal(Value value, int line) {
  auto node = make(ExpressionKind::constant, line);
  node->constant = std::move(value);
  return node;
}

void ExpressionParser::adopt(Expression& node, Arguments arguments) {
  auto count = [&](const ExpressionPtr& argument) {
    if (argument) node.nesting = std::max(node.nesting, argument->nesting + 1);
  };
  for (const auto& argument : arguments.args) count(argument);
  for (const auto& [name, argument] : arguments.named) count(argument);
  count(arguments.spread_args);
  count(arguments.spread_named);
  if (node.nesting > kMaxNesting) bad("the expression nests too deeply");
  node.arguments = std::move(arguments);
}

ExpressionPtr ExpressionParser::expression() {
  Nested nested(*this);
  int line = current().line;
  ExpressionPtr node = disjunction();
  while (skip_name("if")) {
    std::vector<ExpressionPtr> operands(3);
    operands[0] = disjunction();
    operands[1] = std::move(node);
    if (skip_name("else")) operands[2] = expression();
    node = make(ExpressionKind::conditional, line, std::move(operands));
  }
  return node;
}

ExpressionPtr ExpressionParser::disjunction() {
  ExpressionPtr node = conjunction();
  for (int line = current().line; skip_name("or"); line = current().line)
    node = make(ExpressionKind::disjunction, line, std::move(node), conjunction());
  return node;
}

ExpressionPtr ExpressionParser::conjunction() {
  ExpressionPtr node = inverse();
  for (int line = current().line; skip_name("and"); line = current().line)
    node = make(ExpressionKind::conjunction, line, std::move(node), inverse());
  return node;
}

ExpressionPtr ExpressionParser::inverse() {
  Nested nested(*this);
  int line = current().line;
  if (skip_name("not")) return make(ExpressionKind::inverse, line, inverse());
  return comparison();
}

ExpressionPtr ExpressionParser::comparison() {
  int line = current().line;
  std::vector<ExpressionPtr> operands;
  std::vector<Comparison> comparisons;
  operands.push_back(sum());
  while (true) {
    auto known = current().kind == TokenKind::op ? comparison_of(current().text) : std::nullopt;
    if (known) {
      take();
      comparisons.push_back(*known);
    } else if (skip_name("in")) {
      comparisons.push_back(Comparison::in);
    } else if (is_name("not") && look().kind == TokenKind::name && look().text == "in") {
      take(), take();
      comparisons.push_back(Comparison::not_in);
    } else {
      break;
    }
    operands.push_back(sum());
  }
  if (comparisons.empty()) return std::move(operands[0]);
  ExpressionPtr node = make(ExpressionKind::compare, line, std::move(operands));
  node->comparisons = std::move(comparisons);
  return node;
}

ExpressionPtr ExpressionParser::sum() {
  ExpressionPtr node = concat();
  while (is_op("+") || is_op("-")) {
    Token op = take();
    node = make(ExpressionKind::binary, op.line, std::move(node), concat());
    node->operation = op.text == "+" ? Binary::add : Binary::subtract;
  }
  return node;
}

ExpressionPtr ExpressionParser::concat() {
  int line = current().line;
  std::vector<ExpressionPtr> operands;
  do {
    operands.push_back(product());
  } while (skip_op("~"));
  if (operands.size() == 1) return std::move(operands[0]);
  return make(ExpressionKind::concat, line, std::move(operands));
}

ExpressionPtr ExpressionParser::product() {
  ExpressionPtr node = power();
  while (is_op("*") || is_op("/") || is_op("//") || is_op("%")) {
    Token op = take();
    node = make(ExpressionKind::binary, op.line, std::move(node), power());
    node->operation = op.text == "*"    ? Binary::multiply
                      : op.text == "/"  ? Binary::divide
                      : op.text == "//" ? Binary::floor_divide
                                        : Binary::modulo;
  }
  return node;
}

ExpressionPtr ExpressionParser::power() {
  ExpressionPtr node = unary();
  for (int line = current().line; skip_op("**"); line = current().line) {
    node = make(ExpressionKind::binary, line, std::move(node), unary());
    node->operation = Binary::power;
  }
  return node;
}

ExpressionPtr ExpressionParser::unary(bool with_filters) {
  Nested nested(*this);
  int line = current().line;
  ExpressionPtr node;
  if (skip_op("-"))
    node = make(ExpressionKind::negative, line, unary(false));
  else if (skip_op("+"))
    node = make(ExpressionKind::positive, line, unary(false));
  else
    node = primary();
  node = postfix(std::move(node));
  return with_filters ? filter_chain(std::move(node)) : std::move(node);
}

ExpressionPtr ExpressionParser::primary() {
  const Token& token = current();
  if (token.kind == TokenKind::name) return named();
  if (token.kind == TokenKind::literal)
    return token.value.is_text() ? string() : literal(take().value, token.line);
  if (skip_op("(")) {
    ExpressionPtr node = tuple(true, true);
    expect_op(")");
    return node;
  }
  if (is_op("[")) return list();
  if (is_op("{")) return dict();
  bad(fmt::format("unexpected '{}'", describe(token)));
}

ExpressionPtr ExpressionParser::named() {
  Token token = take();
  const std::string& name = token.text;
  if (name == "true" || name == "True") return literal(true, token.line);
  if (name == "false" || name == "False") return literal(false, token.line);
  if (name == "none" || name == "None") return literal(None{}, token.line);
  on_name(name);
  ExpressionPtr node = make(ExpressionKind::name, token.line);
  node->text = name;
  return node;
}

// Adjacent string literals are concatenated.
ExpressionPtr ExpressionParser::string() {
  int line = current().line;
  std::string text;
  while (current().kind == TokenKind::literal && current().value.is_text()) text += take().value.text();
  return literal(Value(std::move(text)), line);
}

bool ExpressionParser::tuple_ends() const {
  return current().kind == TokenKind::variable_end || current().kind == TokenKind::block_end || is_op(")") ||
         is_name("recursive");
}

ExpressionPtr ExpressionParser::tuple(bool conditional, bool parenthesized) {
  int line = current().line;
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
  while (!tuple_ends()) {
    items.push_back(conditional ? expression() : disjunction());
    if (!skip_op(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) return std::move(items[0]);
  if (!is_tuple && !parenthesized) bad(fmt::format("Expected an expression, got '{}'", describe(current())));
  return make(ExpressionKind::tuple, line, std::move(items));
}

ExpressionPtr ExpressionParser::list() {
  int line = take().line;
  std::vector<ExpressionPtr> items;
  while (!is_op("]")) {
    items.push_back(expression());
    if (!is_op("]")) expect_op(",");
  }
  take();
  return make(ExpressionKind::list, line, std::move(items));
}

ExpressionPtr ExpressionParser::dict() {
  int line = take().line;
  std::vector<ExpressionPtr> items;
  while (!is_op("}")) {
    items.push_back(expression());
    expect_op(":");
    items.push_back(expression());
    if (!is_op("}")) expect_op(",");
  }
  take();
  return make(ExpressionKind::dict, line, std::move(items));
}

}  // namespace sluice::jinja::syntax
