#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "grammar/regex/letter_case.h"
#include "grammar/regex/pattern.h"
#include "grammar/regex/unicode_property.h"

namespace sluice::grammar::regex {
namespace {

constexpr int kMaxGroups = 200;
constexpr std::size_t kMaxPattern = 16'384;  // terms are processed recursively
constexpr std::uint32_t kMaxRepeat = 100'000;

const CharSet kDigits = {{'0', '9'}};
const CharSet kSpaceRe2 = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
const CharSet kSpaceEcma = {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
                            {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                            {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};

class PatternParser {
 public:
  PatternParser(std::string_view text, PatternDialect dialect) : text_(text), dialect_(dialect) {}

  Pattern parse() {
    Pattern result = alternatives(0);
    if (at_ < text_.size()) wrong("an unmatched ')'");
    return result;
  }

 private:
  [[noreturn]] void wrong(std::string_view what) const {
    fail(ErrorKind::input, "{} at byte {} of the regular expression {}", what, at_, quote(text_));
  }
  [[noreturn]] void unsupported(std::string_view what) const {
    fail(ErrorKind::unsupported, "{} at byte {} of the regular expression {} cannot be supported", what, at_,
         quote(text_));
  }

  bool done() const { return at_ >= text_.size(); }
  char peek() const { return text_[at_]; }
  bool take(std::string_view expected) {
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }
  char32_t next_char() {
    const CodePoint point = code_point_at(text_, at_);
    at_ += point.length;
    return point.value;
  }

  Pattern alternatives(int depth) {
    if (depth > kMaxGroups) wrong("too many nested groups");
    Pattern result{.kind = Pattern::Kind::any_of};
    do {
      result.parts.push_back(sequence(depth));
    } while (take("|"));
    return result.parts.size() == 1 ? std::move(result.parts[0]) : result;
  }

  Pattern sequence(int depth) {
    Pattern result{.kind = Pattern::Kind::concat};
    while (!done() && peek() != '|' && peek() != ')') {
      if (take("\\Q")) {
        quoted(result.parts);
      } else {
        result.parts.push_back(atom(depth));
      }
      while (!result.parts.empty() && quantified(result.parts.back())) {
      }
    }
    return result.parts.size() == 1 ? std::move(result.parts[0]) : result;
  }

  bool quantified(Pattern& part) {
    if (done()) return false;
    std::uint32_t min = 0, max = kNoLimit;
    const std::size_t before = at_;
    if (take("*")) {
    } else if (take("+")) {
      min = 1;
    } else if (take("?")) {
      max = 1;
    } else if (peek() == '{') {
      if (!braces(min, max)) {
        at_ = before;
        return false;
      }
    } else {
      return false;
    }
    take("?");  // lazy: the same language
    if (!done() && peek() == '+') unsupported("a possessive quantifier");
    Pattern repeat{.kind = Pattern::Kind::repeat, .chars = {}, .min = min, .max = max, .parts = {}};
    repeat.parts.push_back(std::move(part));
    part = std::move(repeat);
    return true;
  }

  // {2}, {2,} or {2,5}; anything else is not a quantifier.
  bool braces(std::uint32_t& min, std::uint32_t& max) {
    ++at_;
    if (!number(min)) return false;
    max = min;
    if (take(",")) {
      max = kNoLimit;
      number(max);
    }
    if (!take("}")) return false;
    if (min > max) wrong("a repetition whose maximum is below its minimum");
    return true;
  }
  bool number(std::uint32_t& value) {
    if (done() || peek() < '0' || peek() > '9') return false;
    std::uint64_t read = 0;
    while (!done() && peek() >= '0' && peek() <= '9') {
      read = std::min<std::uint64_t>(10 * read + static_cast<std::uint64_t>(peek() - '0'), kMaxRepeat + 1);
      ++at_;
    }
    if (read > kMaxRepeat) unsupported("a repetition of more than 100000");
    value = read;
    return true;
  }

  Pattern of(CharSet set) const {
    if (ignore_case_) set = without_case(set);
    Pattern result{.kind = Pattern::Kind::chars, .chars = std::move(set)};
    return result;
  }
  static Pattern assertion(Pattern::Kind kind) {
    Pattern result{.kind = kind};
    return result;
  }

  Pattern atom(int depth) {
    switch (peek()) {
      case '(':
        return group(depth);
      case '[':
        return of(char_class());
      case '.':
        ++at_;
        return of(any_char());
      case '^':
        ++at_;
        return assertion(Pattern::Kind::begin);
      case '$':
        ++at_;
        return assertion(Pattern::Kind::end);
      case '\\':
        return escape();
      case '*':
      case '+':
      case '?':
        wrong("a quantifier with nothing to repeat");
      case '{':
        if (!dialect_.ecma) {
          const std::size_t before = at_;
          std::uint32_t min = 0, max = 0;
          if (braces(min, max)) wrong("a quantifier with nothing to repeat");
          at_ = before;
        }
        [[fallthrough]];
      default:
        return of(CharSet::of(next_char()));
    }
  }

  CharSet any_char() const {
    if (dot_all_) return CharSet::all();
    return (dialect_.ecma ? CharSet{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}} : CharSet{{'\n', '\n'}})
        .complement();
  }

  Pattern group(int depth) {
    ++at_;
    const bool outer_case = ignore_case_, outer_dot = dot_all_;
    if (take("?=")) return look(Pattern::Kind::ahead, depth);
    if (take("?!")) return look(Pattern::Kind::not_ahead, depth);
    if (take("?<=") || take("?<!")) unsupported("a lookbehind");
    if (take("?>")) unsupported("an atomic group");
    if (take("?<") || take("?P<")) {
      const std::size_t end = text_.find('>', at_);
      if (end == std::string_view::npos) wrong("a group name without '>'");
      at_ = end + 1;
    } else if (take("?P=") || take("?(")) {
      unsupported("a reference to a group");
    } else if (take("?") && !flags()) {
      return {};  // the flags hold for the rest of the enclosing group
    }
    Pattern inner = alternatives(depth + 1);
    if (!take(")")) wrong("a missing ')'");
    ignore_case_ = outer_case;
    dot_all_ = outer_dot;
    return inner;
  }

  Pattern look(Pattern::Kind kind, int depth) {
    Pattern result{.kind = kind};
    result.parts.push_back(alternatives(depth + 1));
    if (!take(")")) wrong("a missing ')'");
    return result;
  }

  // (?i:...) opens a group and returns true, (?i) returns false.
  bool flags() {
    bool on = true;
    while (!done()) {
      const char c = text_[at_++];
      switch (c) {
        case ':':
          return true;
        case ')':
          return false;
        case '-':
          on = false;
          break;
        case 'i':
          ignore_case_ = on;
          break;
        case 's':
          dot_all_ = on;
          break;
        case 'u':
        case 'U':  // which repetitions are lazy: the same language
          break;
        case 'm':
        case 'x':
          if (on) unsupported("this flag");
          break;
        default:
          wrong("an unknown group or flag");
      }
    }
    wrong("a missing ')'");
  }

  Pattern escape() {
    if (at_ + 1 >= text_.size()) wrong("a lone '\\'");
    const char c = text_[at_ + 1];
    if (c == 'A') {
      at_ += 2;
      return assertion(Pattern::Kind::begin);
    }
    if (c == 'z' || c == 'Z') {
      at_ += 2;
      return assertion(Pattern::Kind::end);
    }
    if (c == 'b' || c == 'B') {
      at_ += 2;
      return assertion(c == 'b' ? Pattern::Kind::boundary : Pattern::Kind::no_boundary);
    }
    if (c >= '1' && c <= '9') unsupported("a reference to a group");
    if (c == 'k' && at_ + 2 < text_.size() && text_[at_ + 2] == '<') unsupported("a reference to a group");
    CharSet set;
    class_escape(set);
    return of(std::move(set));
  }

  // Up to \E each character is a literal, and a following quantifier applies to the last of them.
  void quoted(std::vector<Pattern>& parts) {
    while (!done() && !take("\\E")) parts.push_back(of(CharSet::of(next_char())));
  }

  // The characters outside the set, in any of their cases.
  CharSet others(const CharSet& set) const { return (ignore_case_ ? without_case(set) : set).complement(); }

  const CharSet& space() const { return dialect_.ecma ? kSpaceEcma : kSpaceRe2; }

  // An escape for one character, which is returned, or for a set, which is added to `set`.
  std::optional<char32_t> class_escape(CharSet& set) {
    ++at_;
    if (done()) wrong("a lone '\\'");
    const char32_t c = next_char();
    switch (c) {
      case 'd':
        set.add(kDigits);
        return std::nullopt;
      case 'D':
        set.add(kDigits.complement());
        return std::nullopt;
      case 'w':
        set.add(word_characters());
        return std::nullopt;
      case 'W':
        set.add(others(word_characters()));
        return std::nullopt;
      case 's':
        set.add(space());
        return std::nullopt;
      case 'S':
        set.add(space().complement());
        return std::nullopt;
      case 'p':
        set.add(property());
        return std::nullopt;
      case 'P':
        set.add(others(property()));
        return std::nullopt;
      default: {
        const char32_t one = escaped_char(c);
        set.add(one, one);
        return one;
      }
    }
  }

  // After \p or \P: one letter, or a name in braces.
  CharSet property() {
    if (done()) wrong("an unfinished Unicode property");
    std::string_view name = text_.substr(at_, 1);
    bool negated = false;
    if (take("{")) {
      negated = !dialect_.ecma && take("^");
      const std::size_t end = text_.find('}', at_);
      if (end == std::string_view::npos) wrong("an unfinished Unicode property");
      name = text_.substr(at_, end - at_);
      at_ = end;
    }
    const std::optional<CharSet> set = unicode_property(name);
    if (!set) wrong("an unknown Unicode property");
    ++at_;
    return negated ? others(*set) : *set;
  }

  char32_t escaped_char(char32_t c) {
    switch (c) {
      case 't':
        return '\t';
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 'f':
        return '\f';
      case 'v':
        return '\v';
      case 'a':
        return '\a';
      case '0':
        return octal();
      case 'x':
        return take("{") ? hex_until_brace() : hex(2);
      case 'u':
        return take("{") ? hex_until_brace() : unicode_escape();
      case 'c': {
        if (done()) wrong("an unfinished control character");
        return next_char() & 31;
      }
      default:
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '1' && c <= '9'))
          wrong("an unknown escape");
        return c;
    }
  }
  char32_t unicode_escape() {
    const char32_t high = hex(4);
    if (high < 0xD800 || high > 0xDBFF || !take("\\u")) return high;
    const char32_t low = hex(4);
    if (low < 0xDC00 || low > 0xDFFF) wrong("an unpaired surrogate");
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
  }
  // After \0: at most two more digits.
  char32_t octal() {
    char32_t value = 0;
    for (int i = 0; i < 2 && !done() && peek() >= '0' && peek() <= '7'; ++i)
      value = 8 * value + static_cast<char32_t>(text_[at_++] - '0');
    return value;
  }
  char32_t hex(std::size_t digits) {
    char32_t value = 0;
    for (std::size_t i = 0; i < digits; ++i) value = 16 * value + hex_digit();
    return value;
  }
  char32_t hex_until_brace() {
    char32_t value = 0;
    while (!take("}")) {
      value = 16 * value + hex_digit();
      if (value > 0x10FFFF) wrong("a character beyond Unicode");
    }
    return value;
  }
  char32_t hex_digit() {
    if (done()) wrong("an unfinished hexadecimal number");
    const char c = text_[at_++];
    if (c >= '0' && c <= '9') return static_cast<char32_t>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<char32_t>(c - 'a' + 10);
    if (c >= 'A' && c <= 'F') return static_cast<char32_t>(c - 'A' + 10);
    wrong("a wrong hexadecimal digit");
  }

  CharSet char_class() {
    ++at_;
    const bool negated = take("^");
    CharSet set;
    bool first = true;
    while (true) {
      if (done()) wrong("a missing ']'");
      if (peek() == ']' && (!first || dialect_.ecma)) break;
      first = false;
      class_item(set);
    }
    ++at_;
    if (ignore_case_) set = without_case(set);
    return negated ? set.complement() : set;
  }

  void class_item(CharSet& set) {
    if (text_.substr(at_).starts_with("[:") && (!dialect_.ecma || names_posix_class())) {
      if (dialect_.ecma) unsupported("a class of POSIX, as ECMAScript has none,");
      at_ += 2;
      return posix_class(set);
    }
    const std::optional<char32_t> low = class_char(set);
    if (!low || at_ + 1 >= text_.size() || peek() != '-' || text_[at_ + 1] == ']') return;
    ++at_;
    CharSet ignored;
    const std::optional<char32_t> high = class_char(ignored);
    if (!high) {  // [a-\d]: the '-' is a literal
      set.add('-', '-');
      set.add(ignored);
      return;
    }
    if (*high < *low) wrong("a range of characters whose end is below its start");
    set.add(*low, *high);
  }
  std::optional<char32_t> class_char(CharSet& set) {
    if (peek() == '\\') {
      if (text_.substr(at_).starts_with("\\b")) {
        at_ += 2;
        set.add('\b', '\b');
        return '\b';
      }
      return class_escape(set);
    }
    const char32_t c = next_char();
    set.add(c, c);
    return c;
  }
  bool names_posix_class() const {
    const std::string_view rest = text_.substr(at_ + 2);
    const std::size_t end = rest.find_first_not_of("^abcdefghijklmnopqrstuvwxyz");
    return end != 0 && end != std::string_view::npos && rest.substr(end).starts_with(":]");
  }
  void posix_class(CharSet& set) {
    struct Named {
      std::string_view name;
      CharSet set;
    };
    static const Named kClasses[] = {
        {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
        {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
        {"ascii", {{0, 0x7F}}},
        {"blank", {{'\t', '\t'}, {' ', ' '}}},
        {"cntrl", {{0, 0x1F}, {0x7F, 0x7F}}},
        {"digit", kDigits},
        {"graph", {{'!', '~'}}},
        {"lower", {{'a', 'z'}}},
        {"print", {{' ', '~'}}},
        {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
        {"space", {{'\t', '\r'}, {' ', ' '}}},
        {"upper", {{'A', 'Z'}}},
        {"word", word_characters()},
        {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
    };
    const bool negated = take("^");
    for (const Named& named : kClasses) {
      if (!text_.substr(at_).starts_with(named.name) ||
          !text_.substr(at_ + named.name.size()).starts_with(":]"))
        continue;
      at_ += named.name.size() + 2;
      set.add(negated ? others(named.set) : named.set);
      return;
    }
    wrong("an unknown named class");
  }

  std::string_view text_;
  PatternDialect dialect_;
  std::size_t at_ = 0;
  bool ignore_case_ = false, dot_all_ = false;
};

}  // namespace

Pattern parse_pattern(std::string_view text, PatternDialect dialect) {
  if (text.size() > kMaxPattern)
    fail(ErrorKind::unsupported, "a regular expression of {} bytes, expected at most {}", text.size(),
         kMaxPattern);
  const std::string valid = to_valid_utf8(text);
  return PatternParser(valid, dialect).parse();
}

}  // namespace sluice::grammar::regex
