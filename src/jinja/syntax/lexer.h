// Splits a template into tokens, with jinja2's whitespace control (trim_blocks and lstrip_blocks on).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jinja/value.h"

namespace sluice::jinja::syntax {

enum class TokenKind { data, variable_begin, variable_end, block_begin, block_end, name, literal, op, end };

struct Token {
  TokenKind kind = TokenKind::end;
  int line = 1;
  std::string text;  // of data, names and operators
  Value value;       // of literals
};

// A fault with its line.
struct SyntaxFault : Fault {
  SyntaxFault(int line, const std::string& message) : Fault(message), line(line) {}
  int line;
};

// The last token is always TokenKind::end.
std::vector<Token> tokenize(std::string_view source);

}  // namespace sluice::jinja::syntax
