#include "jinja/syntax/lexer.h"

#include <algorithm>
#include <charconv>

#include "base/integer_cast.h"
#include "jinja/syntax/literals.h"
#include "jinja/unicode.h"

namespace sluice::jinja::syntax {
namespace {

std::string normalize_newlines(std::string_view source) {
  std::string result;
  result.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      result += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      result += source[i];
    }
  }
  if (!result.empty() && result.back() == '\n') result.pop_back();
  return result;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)), rest_(source_) {}

  std::vector<Token> run() {
    while (at_ < rest_.size()) {
      std::size_t tag = next_tag();
      if (tag == rest_.npos) {
        add(TokenKind::data, rest_.substr(at_));
        advance(rest_.size() - at_);
        break;
      }
      open_tag(tag);
    }
    add(TokenKind::end, {});
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void bad(const std::string& message) const { throw SyntaxFault(line_, message); }

  bool looking_at(std::string_view text, std::size_t offset = 0) const {
    return at_ + offset <= rest_.size() && rest_.substr(at_ + offset, text.size()) == text;
  }

  void advance(std::size_t count) {
    line_ += to_int(std::count(rest_.begin() + at_, rest_.begin() + at_ + count, '\n'));
    at_ += count;
    if (count > 0) line_starting_ = rest_[at_ - 1] == '\n';
  }

  void add(TokenKind kind, std::string_view text) { tokens_.push_back({kind, line_, std::string(text), {}}); }

  std::size_t spaces_from(std::size_t position) const {
    std::size_t end = position;
    for (std::size_t next = position; next < rest_.size(); end = next)
      if (!is_space(next_code_point(rest_, next))) break;
    return end - position;
  }

  std::size_t next_tag() const {
    for (std::size_t i = at_; (i = rest_.find('{', i)) != rest_.npos; ++i)
      if (i + 1 < rest_.size() && (rest_[i + 1] == '%' || rest_[i + 1] == '{' || rest_[i + 1] == '#'))
        return i;
    return rest_.npos;
  }

  // Adds the text before a tag: '-' strips all whitespace, otherwise a block alone on its line loses its
  // indentation.
  void add_text_before(std::size_t tag, char sign, bool strips_indentation) {
    std::string_view text = rest_.substr(at_, tag - at_);
    if (sign == '-') {
      text = strip(text, nullptr, false, true);
    } else if (sign != '+' && strips_indentation) {
      std::size_t newline = text.rfind('\n');
      std::size_t begin = newline == text.npos ? 0 : newline + 1;
      bool line_start = newline != text.npos || line_starting_;
      if (line_start && strip(text.substr(begin), nullptr, true, false).empty()) text = text.substr(0, begin);
    }
    if (!text.empty()) add(TokenKind::data, text);
    advance(tag - at_);
  }

  char sign_at(std::size_t position) const {
    char c = position < rest_.size() ? rest_[position] : '\0';
    return c == '-' || c == '+' ? c : '\0';
  }

  void open_tag(std::size_t tag) {
    char kind = rest_[tag + 1];
    char sign = sign_at(tag + 2);
    add_text_before(tag, sign, kind != '{');
    if (kind == '%' && skip_raw_begin(sign)) return raw();
    if (kind == '{' || kind == '%') add(kind == '{' ? TokenKind::variable_begin : TokenKind::block_begin, {});
    advance(sign != '\0' ? 3 : 2);
    if (kind == '#') return comment();
    expression(kind == '{' ? "}}" : "%}", kind == '%');
  }

  // The length of an end tag at `position`, with its sign, its trimmed whitespace or its one trimmed newline;
  // 0 if none.
  std::size_t end_tag(std::size_t position, std::string_view close, bool trims_newline,
                      bool plus_allowed) const {
    char sign = sign_at(position);
    if (sign == '+' && !plus_allowed) return 0;
    std::size_t end = position + (sign != '\0' ? 1 : 0);
    if (rest_.substr(std::min(end, rest_.size()), close.size()) != close) return 0;
    end += close.size();
    if (sign == '-') end += spaces_from(end);
    if (sign == '\0' && trims_newline && end < rest_.size() && rest_[end] == '\n') ++end;
    return end - position;
  }

  // Moves past a {% raw %} tag if there is one here.
  bool skip_raw_begin(char sign) {
    std::size_t i = at_ + (sign != '\0' ? 3 : 2);
    i += spaces_from(i);
    if (rest_.substr(i, 3) != "raw") return false;
    i += 3;
    i += spaces_from(i);
    std::size_t length = end_tag(i, "%}", false, false);
    if (length == 0) return false;
    advance(i + length - at_);
    return true;
  }

  void raw() {
    for (std::size_t tag = at_; (tag = rest_.find("{%", tag)) != rest_.npos; ++tag) {
      char sign = sign_at(tag + 2);
      std::size_t i = tag + (sign != '\0' ? 3 : 2);
      i += spaces_from(i);
      if (rest_.substr(i, 6) != "endraw") continue;
      i += 6;
      i += spaces_from(i);
      std::size_t length = end_tag(i, "%}", true, true);
      if (length == 0) continue;
      add_text_before(tag, sign, true);
      return advance(i + length - at_);
    }
    bad("Missing end of raw directive");
  }

  void comment() {
    std::size_t close = rest_.find("#}", at_);
    if (close == rest_.npos) bad("Missing end of comment tag");
    if (close > at_ && sign_at(close - 1) != '\0') --close;
    advance(close + end_tag(close, "#}", true, true) - at_);
  }

  void expression(std::string_view close, bool block) {
    std::string open;  // the closing brackets that are still expected
    while (true) {
      if (at_ >= rest_.size()) return;  // the parser reports the missing end and what it expected
      std::size_t length = open.empty() ? end_tag(at_, close, block, block) : 0;
      if (length > 0) {
        add(block ? TokenKind::block_end : TokenKind::variable_end, {});
        return advance(length);
      }
      if (std::size_t spaces = spaces_from(at_); spaces > 0) {
        advance(spaces);
      } else if (!literal() && !name()) {
        operation(open);
      }
    }
  }

  bool literal() {
    Token token{TokenKind::literal, line_, {}, {}};
    try {
      std::size_t length = scan_literal(rest_, at_, token.value);
      if (length == 0) return false;
      tokens_.push_back(std::move(token));
      advance(length);
      return true;
    } catch (const Fault& error) {
      bad(error.what());
    }
  }

  bool name() {
    std::size_t end = at_;
    auto is_letter = [&](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
             static_cast<unsigned char>(c) >= 0x80 || (end > at_ && c >= '0' && c <= '9');
    };
    while (end < rest_.size() && is_letter(rest_[end])) ++end;
    if (end == at_) return false;
    add(TokenKind::name, rest_.substr(at_, end - at_));
    advance(end - at_);
    return true;
  }

  void operation(std::string& open) {
    constexpr std::string_view kPairs[] = {"//", "**", "==", "!=", ">=", "<="};
    constexpr std::string_view kSingles = "+-/*%~[](){}><=.:|,;";
    std::size_t length = 0;
    for (std::string_view pair : kPairs)
      if (looking_at(pair)) length = 2;
    if (length == 0 && kSingles.find(rest_[at_]) != kSingles.npos) length = 1;
    if (length == 0) bad(fmt::format("unexpected char '{}' at {}", rest_.substr(at_, 1), at_));
    char c = rest_[at_];
    if (c == '(' || c == '[' || c == '{') open += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) bad(fmt::format("unexpected '{}'", c));
      if (open.back() != c) bad(fmt::format("unexpected '{}', expected '{}'", c, open.back()));
      open.pop_back();
    }
    add(TokenKind::op, rest_.substr(at_, length));
    advance(length);
  }

  std::string source_;
  std::string_view rest_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(normalize_newlines(source)).run();
}

}  // namespace sluice::jinja::syntax
