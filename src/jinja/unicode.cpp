#include "jinja/unicode.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <memory>

#include "base/utf8.h"
#include "jinja/budget.h"

namespace sluice::jinja {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// PCRE2 has the Unicode tables, so none are stored here.
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

namespace case_tables {

struct Mapping {
  char32_t from;
  const char* to;
};
struct Interval {
  char32_t first, last;
};

#include "jinja/case_tables.inc"

template <std::size_t size>
const char* find(const Mapping (&table)[size], char32_t c) {
  const auto found = std::lower_bound(std::begin(table), std::end(table), c,
                                      [](const Mapping& one, char32_t value) { return one.from < value; });
  return found != std::end(table) && found->from == c ? found->to : nullptr;
}

template <std::size_t size>
bool contains(const Interval (&table)[size], char32_t c) {
  return std::any_of(std::begin(table), std::end(table),
                     [c](const Interval& one) { return c >= one.first && c <= one.last; });
}

}  // namespace case_tables

std::string one(char32_t code_point) {
  std::string text;
  append_utf8(text, code_point);
  return text;
}

// Maps each code point by the table; runs that the table does not contain by `otherwise`.
template <class Find, class Otherwise>
std::string mapped(std::string_view text, Find find, Otherwise otherwise) {
  std::string result;
  std::size_t run = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t start = i;
    const char* to = find(next_code_point(text, i));
    if (to == nullptr) continue;
    if (start > run) result += otherwise(text.substr(run, start - run));
    result += to;
    run = i;
  }
  if (run < text.size()) result += otherwise(text.substr(run));
  return result;
}

std::string simple_upper(std::string_view text) {
  static const Pattern kAll(".+");
  return kAll.substitute(text, "\\U$0");
}

std::string simple_lower(std::string_view text) {
  static const Pattern kAll(".+");
  return kAll.substitute(text, "\\L$0");
}

constexpr char32_t kSigma = 0x3A3;
constexpr char32_t kDottedI = 0x130;

// Whether a sigma here ends a word: a letter is before it and none after it.
bool ends_word(std::string_view before, std::string_view behind) {
  static const Pattern kBefore("\\p{Cased}\\p{Case_Ignorable}*$");
  static const Pattern kBehind("^\\p{Case_Ignorable}*\\p{Cased}");
  return kBefore.matches(before) && !kBehind.matches(behind);
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

bool is_digit(char32_t c) {
  return is_decimal(c) || case_tables::contains(case_tables::kDigits, c);
}

bool is_numeric(char32_t c) {
  return is_decimal(c) || case_tables::contains(case_tables::kNumbers, c);
}

bool begins_identifier(char32_t c) {
  if (c < 0x80) return is_cased(c) || c == '_';
  static const Pattern kStart("^\\p{XID_Start}");
  return kStart.matches(one(c));
}

bool continues_identifier(char32_t c) {
  if (c < 0x80) return begins_identifier(c) || is_decimal(c);
  static const Pattern kContinue("^\\p{XID_Continue}");
  return kContinue.matches(one(c));
}

std::string to_upper(std::string_view text) {
  if (is_ascii(text)) {
    std::string result(text);
    for (char& c : result)
      if (c >= 'a' && c <= 'z') c = c - 'a' + 'A';
    return result;
  }
  return mapped(
      text, [](char32_t c) { return case_tables::find(case_tables::kUpper, c); }, simple_upper);
}

std::string to_lower(std::string_view text) {
  return lower_within(text, 0, text.size());
}

std::string lower_within(std::string_view text, std::size_t begin, std::size_t end) {
  if (is_ascii(text.substr(begin, end - begin))) {
    std::string result(text.substr(begin, end - begin));
    for (char& c : result)
      if (c >= 'A' && c <= 'Z') c = c - 'A' + 'a';
    return result;
  }
  std::string result;
  std::size_t run = begin;
  for (std::size_t i = begin; i < end;) {
    const std::size_t start = i;
    const char32_t c = next_code_point(text, i);
    if (c != kSigma && c != kDottedI) continue;
    result += simple_lower(text.substr(run, start - run));
    if (c == kDottedI)
      result += "i\xCC\x87";
    else
      result += ends_word(text.substr(0, start), text.substr(i)) ? "\xCF\x82" : "\xCF\x83";
    run = i;
  }
  return run < end ? result + simple_lower(text.substr(run, end - run)) : result;
}

std::string to_title(std::string_view text) {
  return mapped(
      text, [](char32_t c) { return case_tables::find(case_tables::kTitle, c); }, to_upper);
}

std::string fold_case(std::string_view text) {
  if (is_ascii(text)) return to_lower(text);
  return mapped(
      text, [](char32_t c) { return c == kSigma ? "\xCF\x83" : case_tables::find(case_tables::kFolded, c); },
      to_lower);
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
