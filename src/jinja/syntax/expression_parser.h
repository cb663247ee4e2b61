// The expression parser, the base of the statement parser.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "jinja/syntax/ast.h"
#include "jinja/syntax/lexer.h"

namespace sluice::jinja::syntax {

class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  virtual ~ExpressionParser() = default;

 protected:
  const Token& current() const { return tokens_[at_]; }
  const Token& look() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take();
  bool is_op(std::string_view op) const { return current().kind == TokenKind::op && current().text == op; }
  bool is_name(std::string_view name) const {
    return current().kind == TokenKind::name && current().text == name;
  }
  bool skip_op(std::string_view op);
  bool skip_name(std::string_view name);
  void expect_op(std::string_view op);
  std::string expect_name();
  void expect(TokenKind kind);
  [[noreturn]] void bad(const std::string& message) const { throw SyntaxFault(current().line, message); }
  [[noreturn]] void unexpected(std::string_view wanted) const;

  ExpressionPtr expression();
  // Expressions separated by commas form a tuple.
  ExpressionPtr tuple(bool conditional = true, bool parenthesized = false);
  ExpressionPtr disjunction();
  ExpressionPtr filters(ExpressionPtr subject, bool inline_first = false);

  // Called for every name that is read.
  virtual void on_name(const std::string&) {}

  // Limits the recursion of the parser.
  class Nested {
   public:
    explicit Nested(ExpressionParser& parser) : parser_(parser) {
      if (++parser_.nesting_ > kMaxNesting) parser_.bad("the template nests too deeply");
    }
    ~Nested() { --parser_.nesting_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    ExpressionParser& parser_;
  };

 private:
  ExpressionPtr make(ExpressionKind kind, int line, std::vector<ExpressionPtr> operands = {});
  ExpressionPtr make(ExpressionKind kind, int line, ExpressionPtr a, ExpressionPtr b = nullptr);
  ExpressionPtr literal(Value value, int line);
  ExpressionPtr conjunction();
  ExpressionPtr inverse();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concat();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filters = true);
  ExpressionPtr primary();
  ExpressionPtr named();
  ExpressionPtr string();
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr node);
  ExpressionPtr subscript(ExpressionPtr node);
  ExpressionPtr slice_or_index(ExpressionPtr node);
  ExpressionPtr call(ExpressionPtr node);
  ExpressionPtr test(ExpressionPtr node);
  ExpressionPtr filter_chain(ExpressionPtr node);
  std::string dotted_name();
  Arguments arguments();
  void argument(Arguments& result);
  // Adds the arguments to the node and to its nesting depth.
  void adopt(Expression& node, Arguments arguments);
  bool tuple_ends() const;

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int nesting_ = 0;
};

}  // namespace sluice::jinja::syntax
