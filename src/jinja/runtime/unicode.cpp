#include "jinja/runtime/unicode.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <memory>

#include "base/utf8.h"
#include "jinja/runtime/budget.h"

namespace sluice::jinja {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// PCRE2 carries the Unicode tables, so that none are kept here.
class Pattern {
 public:
  explicit Pattern(const char* source) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source), PCRE2_ZERO_TERMINATED,
                              PCRE2_UTF | PCRE2_DOTALL | PCRE2_MATCH_INVALID_UTF, &error, &offset, nullptr));
    if (!code_) fault("cannot compile the pattern {}", source);
  }

  bool matches(std::string_view text) const {
    std::unique_ptr<pcre2_match_data, Free> match(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
    return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0, match.get(),
                       nullptr) > 0;
  }

  std::string substitute(std::string_view text, std::string_view replacement) const {
    std::string result(text.size() * 3 + 1, '\0');
    PCRE2_SIZE size = result.size();
    int count = pcre2_substitute(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0,
                                 PCRE2_SUBSTITUTE_EXTENDED | PCRE2_SUBSTITUTE_GLOBAL, nullptr, nullptr,
                                 reinterpret_cast<PCRE2_SPTR>(replacement.data()), replacement.size(),
                                 reinterpret_cast<PCRE2_UCHAR*>(result.data()), &size);
    if (count < 0) return std::string(text);
    result.resize(size);
    return result;
  }

 private:
  struct Free {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
  };
  std::unique_ptr<pcre2_code, Free> code_;
};

std::string one(char32_t code_point) {
  std::string text;
  append_utf8(text, code_point);
  return text;
}

}  // namespace

char32_t next_code_point(std::string_view text, std::size_t& position) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char lead = byte(position++);
  if (lead < 0x80) return lead;
  int extra = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  if (lead < 0xC2 || lead > 0xF4 || position + extra > text.size()) return kReplacement;
  char32_t code_point = lead & (0x3F >> extra);
  for (int i = 0; i < extra; ++i) {
    if ((byte(position + i) & 0xC0) != 0x80) return kReplacement;
    code_point = code_point << 6 | (byte(position + i) & 0x3F);
  }
  constexpr char32_t kSmallest[] = {0, 0x80, 0x800, 0x10000};
  bool surrogate = code_point >= 0xD800 && code_point < 0xE000;
  if (code_point < kSmallest[extra] || code_point > 0x10FFFF || surrogate) return kReplacement;
  position += extra;
  return code_point;
}

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++count) next_code_point(text, i);
  return count;
}

std::vector<std::size_t> code_point_offsets(std::string_view text) {
  std::vector<std::size_t> offsets{0};
  for (std::size_t i = 0; i < text.size();) {
    next_code_point(text, i);
    offsets.push_back(i);
  }
  return offsets;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_printable(char32_t c) {
  if (c < 0x80) return c >= 0x20 && c < 0x7F;
  static const Pattern kHidden("^[\\p{C}\\p{Z}]");
  return !kHidden.matches(one(c));
}

bool is_cased(char32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  static const Pattern kCased("^[\\p{Lu}\\p{Ll}\\p{Lt}]");
  return kCased.matches(one(c));
}

bool is_alpha(char32_t c) {
  if (c < 0x80) return is_cased(c);
  static const Pattern kLetter("^\\p{L}");
  return kLetter.matches(one(c));
}

bool is_decimal(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  static const Pattern kDecimal("^\\p{Nd}");
  return kDecimal.matches(one(c));
}

std::string to_upper(std::string_view text) {
  if (is_ascii(text)) {
    std::string result(text);
    for (char& c : result)
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    return result;
  }
  static const Pattern kAll(".+");
  return kAll.substitute(text, "\\U$0");
}

std::string to_lower(std::string_view text) {
  if (is_ascii(text)) {
    std::string result(text);
    for (char& c : result)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return result;
  }
  static const Pattern kAll(".+");
  return kAll.substitute(text, "\\L$0");
}

std::string_view strip(std::string_view text, const std::string_view* characters, bool left, bool right) {
  std::u32string set;
  if (characters != nullptr)
    for (std::size_t i = 0; i < characters->size();) set += next_code_point(*characters, i);
  auto drops = [&](char32_t c) { return characters ? set.find(c) != set.npos : is_space(c); };
  std::size_t begin = 0, end = text.size();
  while (left && begin < end) {
    std::size_t next = begin;
    if (!drops(next_code_point(text, next))) break;
    begin = next;
  }
  while (right && begin < end) {
    std::size_t start = end - 1;
    while (start > begin && end - start < 4 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80)
      --start;
    std::size_t next = start;
    char32_t c = next_code_point(text.substr(0, end), next);
    if (next != end) start = end - 1, c = kReplacement;
    if (!drops(c)) break;
    end = start;
  }
  return text.substr(begin, end - begin);
}

}  // namespace sluice::jinja
