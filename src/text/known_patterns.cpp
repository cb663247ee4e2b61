// Scanners for the regexes of known models. Each tries the alternatives of its regex in order.
#include <string>

#include "base/utf8.h"
#include "text/split_pattern.h"
#include "text/unicode.h"

namespace sluice::text {

const std::string_view kGpt2Regex =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

constexpr std::string_view kQwen2Regex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)"
    R"(|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35Regex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepSeekNumbersRegex = R"(\p{N}{1,3})";
constexpr std::string_view kDeepSeekCjkRegex = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+";
constexpr std::string_view kDeepSeekWordsRegex =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr bool is_newline(char32_t c) {
  return c == '\r' || c == '\n';
}
constexpr bool is_ascii_letter(char32_t c) {
  return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

// A text as characters with classes. Positions are byte offsets; past the end the character is 0 without
// class.
class Cursor {
 public:
  struct Char {
    char32_t value = 0;
    unsigned classes = 0;
    std::size_t next = 0;
  };

  explicit Cursor(std::string_view text) : text_(text) {}

  std::size_t size() const { return text_.size(); }
  char byte(std::size_t at) const { return at < text_.size() ? text_[at] : '\0'; }

  Char operator[](std::size_t at) const {
    if (at >= text_.size()) return {0, 0, at};
    const CodePoint c = code_point_at(text_, at);
    return {c.value, classes_(c.value), at + c.length};
  }

  // The end of the longest run from `at` whose characters satisfy the predicate.
  template <class Predicate>
  std::size_t skip(std::size_t at, Predicate predicate) const {
    while (at < text_.size()) {
      const Char c = (*this)[at];
      if (!predicate(c)) break;
      at = c.next;
    }
    return at;
  }

  std::size_t skip_any_of(std::size_t at, unsigned classes) const {
    return skip(at, [=](const Char& c) { return (c.classes & classes) != 0; });
  }
  std::size_t skip_none_of(std::size_t at, unsigned classes) const {
    return skip(at, [=](const Char& c) { return (c.classes & classes) == 0; });
  }
  std::size_t skip_newlines(std::size_t at) const {
    while (is_newline(static_cast<unsigned char>(byte(at)))) ++at;
    return at;
  }

 private:
  std::string_view text_;
  const CharClasses& classes_ = CharClasses::instance();
};

// Each function below returns the end of the match that starts at `at`, or `at` if there is none.

// 's|'t|'re|'ve|'m|'ll|'d, with (?i:) if `fold_case`.
std::size_t contraction(const Cursor& text, std::size_t at, bool fold_case) {
  if (text.byte(at) != '\'') return at;
  const auto letter = [&](std::size_t i) -> char {
    const char c = text.byte(i);
    return fold_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  };
  const char first = letter(at + 1), second = letter(at + 2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l'))
    return at + 3;
  constexpr char32_t kLongS = 0x17F;  // folds to s
  const Cursor::Char next = text[at + 1];
  return fold_case && next.value == kLongS ? next.next : at;
}

// \s*[\r\n]+|\s+(?!\S)|\s+, the first alternative only if `newlines_end`.
std::size_t whitespace(const Cursor& text, std::size_t at, bool newlines_end) {
  std::size_t end = at, last = at, after_newline = at;
  for (Cursor::Char c = text[at]; c.classes & kSpace; c = text[end]) {
    last = end;
    end = c.next;
    if (is_newline(c.value)) after_newline = end;
  }
  if (newlines_end && after_newline > at) return after_newline;
  // The last space before a word belongs to the word, unless it is the only one.
  return end == text.size() || last == at ? end : last;
}

template <unsigned kLetters>
std::size_t qwen_word(const Cursor& text, std::size_t at) {
  if (const std::size_t end = contraction(text, at, true); end > at) return end;
  const Cursor::Char c = text[at];
  if (c.classes & kLetter) return text.skip_any_of(c.next, kLetters);
  if (c.classes & kNumber) return c.next;
  if (!is_newline(c.value)) {
    const std::size_t end = text.skip_any_of(c.next, kLetters);
    if (end > c.next || (c.classes & kLetters)) return end;
  }
  const std::size_t punctuation = c.value == ' ' ? c.next : at;
  if (const std::size_t end = text.skip_none_of(punctuation, kSpace | kLetters | kNumber); end > punctuation)
    return text.skip_newlines(end);
  return whitespace(text, at, true);
}

std::size_t gpt2_word(const Cursor& text, std::size_t at) {
  if (const std::size_t end = contraction(text, at, false); end > at) return end;
  const std::size_t begin = text.byte(at) == ' ' ? at + 1 : at;
  for (const unsigned classes : {kLetter, kNumber})
    if (const std::size_t end = text.skip_any_of(begin, classes); end > begin) return end;
  if (const std::size_t end = text.skip_none_of(begin, kSpace | kLetter | kNumber); end > begin) return end;
  return whitespace(text, at, false);
}

std::size_t deepseek_numbers(const Cursor& text, std::size_t at) {
  for (int digits = 0; digits < 3; ++digits) {
    const Cursor::Char c = text[at];
    if (!(c.classes & kNumber)) break;
    at = c.next;
  }
  return at;
}

std::size_t deepseek_cjk(const Cursor& text, std::size_t at) {
  return text.skip(at, [](const Cursor::Char& c) {
    return (c.value >= 0x4e00 && c.value <= 0x9fa5) || (c.value >= 0x3040 && c.value <= 0x30ff);
  });
}

std::size_t deepseek_words(const Cursor& text, std::size_t at) {
  constexpr unsigned kLetters = kLetter | kMark, kSigns = kPunctuation | kSymbol;
  const Cursor::Char c = text[at];
  const bool ascii_sign = c.value > ' ' && c.value < 0x7F && (c.classes & kSigns);
  if (ascii_sign && is_ascii_letter(static_cast<unsigned char>(text.byte(c.next))))
    return text.skip(c.next, [](const Cursor::Char& letter) { return is_ascii_letter(letter.value); });
  if (c.classes & kLetter) return text.skip_any_of(c.next, kLetters);
  if (!is_newline(c.value) && !(c.classes & kSigns)) {
    const std::size_t end = text.skip_any_of(c.next, kLetters);
    if (end > c.next || (c.classes & kMark)) return end;
  }
  const std::size_t signs = c.value == ' ' ? c.next : at;
  if (const std::size_t end = text.skip_any_of(signs, kSigns); end > signs) return text.skip_newlines(end);
  return whitespace(text, at, true);
}

using Scanner = std::size_t (*)(const Cursor&, std::size_t);

class ScannerPattern : public SplitPattern {
 public:
  explicit ScannerPattern(Scanner scanner) : scanner_(scanner) {}

  void find_all(std::string_view text, std::vector<Match>& matches) const override {
    const Cursor cursor(text);
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t end = scanner_(cursor, at);
      if (end > at) matches.push_back({at, end});
      at = end > at ? end : cursor[at].next;
    }
  }

 private:
  Scanner scanner_;
};

// Files spell characters differently: "\r" or the control character itself, "\x{4e00}" or the letter.
std::string with_common_spelling(std::string_view regex) {
  std::string out;
  for (std::size_t at = 0; at < regex.size(); ++at) {
    if (regex[at] == '\r') {
      out += "\\r";
    } else if (regex[at] == '\n') {
      out += "\\n";
    } else if (regex.substr(at, 3) == "\\x{" && regex.substr(at + 7, 1) == "}") {
      const std::string digits(regex.substr(at + 3, 4));
      if (digits.find_first_not_of("0123456789abcdefABCDEF") != digits.npos) return std::string(regex);
      append_utf8(out, static_cast<char32_t>(std::stoul(digits, nullptr, 16)));
      at += 7;
    } else {
      out += regex[at];
    }
  }
  return out;
}

}  // namespace

std::unique_ptr<SplitPattern> make_known_pattern(std::string_view regex) {
  constexpr struct {
    std::string_view regex;
    Scanner scanner;
  } kKnown[] = {
      {kQwen2Regex, qwen_word<kLetter>},         {kQwen35Regex, qwen_word<kLetter | kMark>},
      {kDeepSeekNumbersRegex, deepseek_numbers}, {kDeepSeekCjkRegex, deepseek_cjk},
      {kDeepSeekWordsRegex, deepseek_words},
  };
  const std::string spelling = with_common_spelling(regex);
  if (spelling == kGpt2Regex) return std::make_unique<ScannerPattern>(gpt2_word);
  for (const auto& known : kKnown)
    if (spelling == known.regex) return std::make_unique<ScannerPattern>(known.scanner);
  return nullptr;
}

}  // namespace sluice::text
