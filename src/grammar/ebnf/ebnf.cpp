#include "grammar/ebnf/ebnf.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "grammar/regex/char_set.h"

namespace sluice::grammar::ebnf {
namespace {

// A part of a rule. Parts that call no rule become one regular expression and so one lexeme.
struct Part {
  enum class Kind { regex, call, sequence, choice, repeat } kind = Kind::regex;
  regex::Id regex = regex::Arena::kEmpty;
  std::string name = {};
  std::uint32_t min = 0, max = 0;
  std::vector<Part> parts = {};
  std::size_t position = 0;
};

class EbnfParser {
 public:
  EbnfParser(std::string_view text, regex::Arena& arena) : text_(text), arena_(arena) {}

  std::vector<std::pair<std::string, Part>> parse() {
    std::vector<std::pair<std::string, Part>> rules;
    for (skip_blanks(); at_ < text_.size(); skip_blanks()) {
      std::string rule = name();
      skip_blanks();
      if (!take("::=") && !take("=")) wrong("expected '::='");
      rules.emplace_back(std::move(rule), choice(0));
      skip_blanks();
      take(";");
    }
    return rules;
  }

 private:
  static constexpr int kMaxDepth = 200;
  static constexpr int kMaxJoined = 100;  // concatenated terms are processed recursively
  static constexpr int kMaxRepeated = 8;  // repetitions of a repetition
  static constexpr std::uint32_t kMaxRepeat = 10'000;

  [[noreturn]] void wrong(std::string_view what) const {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + std::min(at_, text_.size()), '\n');
    fail(ErrorKind::input, "grammar: line {}: {}", line, what);
  }
  bool done() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool take(std::string_view expected) {
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }
  static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  }

  void skip_blanks() {
    while (!done()) {
      if (take(" ") || take("\t") || take("\n") || take("\r")) continue;
      if (peek() == '#' && peek(1) != 'x') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (take("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (take("/*")) {
        const std::size_t end = text_.find("*/", at_);
        if (end == std::string_view::npos) wrong("a comment without end");
        at_ = end + 2;
      } else {
        return;
      }
    }
  }

  std::string name() {
    const std::size_t begin = at_;
    if (done() || peek() == '.' || peek() == '-') wrong("expected the name of a rule");
    while (!done() && is_name(peek())) ++at_;
    if (at_ == begin) wrong("expected the name of a rule");
    return std::string(text_.substr(begin, at_ - begin));
  }

  // Whether a name here begins the next rule.
  bool at_next_rule() {
    const std::size_t before = at_;
    while (!done() && is_name(peek())) ++at_;
    const bool named = at_ > before;
    skip_blanks();
    const bool next = named && (text_.substr(at_).starts_with("::=") || peek() == '=');
    at_ = before;
    return next;
  }

  Part choice(int depth) {
    if (depth > kMaxDepth) wrong("too many nested groups");
    Part result{.kind = Part::Kind::choice};
    do {
      result.parts.push_back(sequence(depth));
      skip_blanks();
    } while (take("|"));
    if (result.parts.size() == 1) return std::move(result.parts[0]);
    if (std::ranges::all_of(result.parts, [](const Part& part) { return part.kind == Part::Kind::regex; })) {
      std::vector<regex::Id> choices;
      for (const Part& part : result.parts) choices.push_back(part.regex);
      return {.kind = Part::Kind::regex, .regex = arena_.any_of(std::move(choices))};
    }
    return result;
  }

  Part sequence(int depth) {
    Part result{.kind = Part::Kind::sequence};
    int joined = 0;
    for (skip_blanks(); !done() && peek() != '|' && peek() != ')' && peek() != ';'; skip_blanks()) {
      if (is_name(peek()) && peek() != '.' && at_next_rule()) break;
      Part part = item(depth);
      for (int times = 0; repeated(part); ++times)
        if (times == kMaxRepeated) wrong("too many repetitions of one item");
      const bool joins = part.kind == Part::Kind::regex && !result.parts.empty() &&
                         result.parts.back().kind == Part::Kind::regex && joined < kMaxJoined;
      joined = joins ? joined + 1 : 0;
      if (joins) {
        result.parts.back().regex = arena_.concat(result.parts.back().regex, part.regex);
      } else {
        result.parts.push_back(std::move(part));
      }
    }
    if (result.parts.empty()) return {};
    return result.parts.size() == 1 ? std::move(result.parts[0]) : result;
  }

  bool repeated(Part& part) {
    std::uint32_t min = 0, max = regex::kNoLimit;
    if (take("*")) {
    } else if (take("+")) {
      min = 1;
    } else if (take("?")) {
      max = 1;
    } else if (take("{")) {
      skip_blanks();
      min = number();
      skip_blanks();
      max = min;
      if (take(",")) {
        skip_blanks();
        max = peek() == '}' ? regex::kNoLimit : number();
        skip_blanks();
      }
      if (!take("}")) wrong("expected '}'");
      if (max < min) wrong("a repetition whose maximum is below its minimum");
    } else {
      return false;
    }
    if (part.kind == Part::Kind::regex) {
      part.regex = arena_.repeat(part.regex, min, max);
      return true;
    }
    Part repeat{.kind = Part::Kind::repeat, .min = min, .max = max};
    repeat.parts.push_back(std::move(part));
    part = std::move(repeat);
    return true;
  }

  std::uint32_t number() {
    std::uint32_t value = 0;
    if (peek() < '0' || peek() > '9') wrong("expected a number");
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      value = 10 * value + static_cast<std::uint32_t>(peek() - '0');
      if (value > kMaxRepeat) wrong("a repetition of more than 10000");
    }
    return value;
  }

  Part of(const regex::CharSet& set) {
    return {.kind = Part::Kind::regex, .regex = regex::utf8_regex(arena_, set)};
  }

  Part item(int depth) {
    if (take("(")) {
      Part inner = choice(depth + 1);
      skip_blanks();
      if (!take(")")) wrong("expected ')'");
      return inner;
    }
    if (take("[")) return of(char_class());
    if (take("#x")) return of(regex::CharSet::of(hex()));
    if (take(".")) return of(regex::CharSet::all());
    if (peek() == '"' || peek() == '\'') return literal();
    Part call{.kind = Part::Kind::call};
    call.position = at_;
    call.name = name();
    return call;
  }

  Part literal() {
    const char mark = text_[at_++];
    std::string bytes;
    while (true) {
      if (done() || peek() == '\n') wrong("a literal without end");
      if (peek() == mark) break;
      append_utf8(bytes, character());
    }
    ++at_;
    return {.kind = Part::Kind::regex, .regex = arena_.literal(bytes)};
  }

  regex::CharSet char_class() {
    const bool negated = take("^");
    regex::CharSet set;
    while (!take("]")) {
      if (done()) wrong("a character class without end");
      const char32_t first = take("#x") ? hex() : character();
      char32_t last = first;
      if (peek() == '-' && peek(1) != ']') {
        ++at_;
        last = take("#x") ? hex() : character();
      }
      if (last < first) wrong("a range of characters whose end is below its start");
      set.add(first, last);
    }
    return negated ? set.complement() : set;
  }

  char32_t character() {
    if (done()) wrong("a text without end");
    const CodePoint point = code_point_at(text_, at_);
    at_ += point.length;
    if (point.value != '\\') return point.value;
    if (done()) wrong("a lone '\\'");
    const char c = text_[at_++];
    switch (c) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'x':
        return hex(2);
      case 'u':
        return hex(4);
      case 'U':
        return hex(8);
      default:
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
          wrong("an unknown escape");
        --at_;
        const CodePoint same = code_point_at(text_, at_);
        at_ += same.length;
        return same.value;
    }
  }

  // Reads that many digits, or all there are.
  char32_t hex(int digits = 0) {
    char32_t value = 0;
    int read = 0;
    for (; digits == 0 || read < digits; ++read, ++at_) {
      const char c = peek();
      int digit = -1;
      if (c >= '0' && c <= '9') digit = c - '0';
      if (c >= 'a' && c <= 'f') digit = c - 'a' + 10;
      if (c >= 'A' && c <= 'F') digit = c - 'A' + 10;
      if (digit < 0) break;
      value = 16 * value + static_cast<char32_t>(digit);
      if (value > 0x10FFFF) wrong("a character beyond Unicode");
    }
    if (read == 0 || read < digits) wrong("expected hexadecimal digits");
    return value;
  }

  std::string_view text_;
  regex::Arena& arena_;
  std::size_t at_ = 0;
};

class EbnfRules {
 public:
  EbnfRules(Rules& rules, std::string_view text) : rules_(rules), text_(text) {}

  RuleId write(const std::vector<std::pair<std::string, Part>>& parsed) {
    for (const auto& [name, part] : parsed)
      if (!ids_.try_emplace(name, rules_.add_rule(name)).second)
        fail(ErrorKind::input, "grammar: rule {} is defined twice", quote(name));
    for (const auto& [name, part] : parsed) {
      const RuleId rule = ids_.at(name);
      const NodeId end = rules_.add_node(rule);
      rules_.set_final(end);
      write(part, rule, rules_.start(rule), end);
    }
    const auto root = ids_.find("root");
    if (root == ids_.end()) fail(ErrorKind::input, "grammar: there is no rule 'root'");
    return root->second;
  }

 private:
  void write(const Part& part, RuleId rule, NodeId from, NodeId to) {
    switch (part.kind) {
      case Part::Kind::regex:
        return rules_.add_lexeme(from, part.regex, to);
      case Part::Kind::call: {
        const auto called = ids_.find(part.name);
        if (called == ids_.end()) {
          const auto line = 1 + std::count(text_.begin(), text_.begin() + part.position, '\n');
          fail(ErrorKind::input, "grammar: line {}: there is no rule {}", line, quote(part.name));
        }
        return rules_.add_call(from, called->second, to);
      }
      case Part::Kind::sequence:
        for (std::size_t i = 0; i < part.parts.size(); ++i) {
          const NodeId next = i + 1 == part.parts.size() ? to : rules_.add_node(rule);
          write(part.parts[i], rule, from, next);
          from = next;
        }
        return;
      case Part::Kind::choice:
        for (const Part& choice : part.parts) write(choice, rule, from, to);
        return;
      case Part::Kind::repeat:
        return write_repeat(part, rule, from, to);
    }
  }

  void write_repeat(const Part& part, RuleId rule, NodeId from, NodeId to) {
    const auto once = [&] {
      const NodeId next = rules_.add_node(rule);
      write(part.parts[0], rule, from, next);
      from = next;
    };
    for (std::uint32_t i = 0; i < part.min; ++i) once();
    rules_.add_skip(from, to);
    if (part.max == regex::kNoLimit) {
      const NodeId loop = rules_.add_node(rule);
      rules_.add_skip(from, loop);
      write(part.parts[0], rule, loop, loop);
      rules_.add_skip(loop, to);
      return;
    }
    for (std::uint32_t i = part.min; i < part.max; ++i) {
      once();
      rules_.add_skip(from, to);
    }
  }

  Rules& rules_;
  std::string_view text_;
  std::map<std::string, RuleId> ids_;
};

}  // namespace

RuleId compile(std::string_view text, Rules& rules, regex::Arena& arena) {
  const std::string valid = to_valid_utf8(text);
  return EbnfRules(rules, valid).write(EbnfParser(valid, arena).parse());
}

}  // namespace sluice::grammar::ebnf
