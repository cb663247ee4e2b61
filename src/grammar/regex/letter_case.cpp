#include "grammar/regex/letter_case.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"

namespace sluice::grammar::regex {
namespace {

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};

// The text with letters converted to the other case.
std::string converted(const std::string& text, const char* replacement) {
  int error = 0;
  std::size_t offset = 0;
  const std::unique_ptr<pcre2_code, FreeCode> code(pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>("(?s)."), PCRE2_ZERO_TERMINATED, PCRE2_UTF, &error, &offset, nullptr));
  std::string result(2 * text.size(), '\0');
  std::size_t length = result.size();
  const int replaced =
      code == nullptr
          ? error
          : pcre2_substitute(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0,
                             PCRE2_SUBSTITUTE_GLOBAL | PCRE2_SUBSTITUTE_EXTENDED, nullptr, nullptr,
                             reinterpret_cast<PCRE2_SPTR>(replacement), PCRE2_ZERO_TERMINATED,
                             reinterpret_cast<PCRE2_UCHAR*>(result.data()), &length);
  if (replaced < 0) fail(ErrorKind::internal, "the cases of letters cannot be looked up: {}", replaced);
  result.resize(length);
  return result;
}

// Groups of characters that differ only in case.
class Cases {
 public:
  Cases() {
    // PCRE2 converts letters only; these are numbers, symbols and a mark that have cases too.
    for (char32_t c = 0; c < 16; ++c) join(0x2160 + c, 0x2170 + c);
    for (char32_t c = 0; c < 26; ++c) join(0x24B6 + c, 0x24D0 + c);
    join(0x0345, 0x03B9);
    std::string text;
    for (char32_t c = 0; c < 0x20000; ++c)
      if (c < 0xD800 || c > 0xDFFF) append_utf8(text, c);
    const std::string upper = converted(text, "\\U$0"), lower = converted(text, "\\L$0");
    for (std::size_t at = 0, up = 0, low = 0; at < text.size();) {
      const CodePoint c = code_point_at(text, at), upper_c = code_point_at(upper, up),
                      lower_c = code_point_at(lower, low);
      join(c.value, upper_c.value);
      join(c.value, lower_c.value);
      at += c.length;
      up += upper_c.length;
      low += lower_c.length;
    }
    for (const auto& [c, group] : group_of_) groups_[group].push_back(c);
  }

  // All cases of the set's characters, in the order of the groups.
  std::vector<char32_t> of(const CharSet& set) const {
    std::vector<char32_t> result;
    for (const std::vector<char32_t>& group : groups_)
      if (std::ranges::any_of(group, [&set](char32_t c) { return set.contains(c); }))
        result.insert(result.end(), group.begin(), group.end());
    return result;
  }

 private:
  void join(char32_t a, char32_t b) {
    if (a == b) return;
    const auto group = [this](char32_t c) {
      const auto [found, added] = group_of_.try_emplace(c, groups_.size());
      if (added) groups_.emplace_back();
      return found->second;
    };
    const std::size_t kept = group(a), left = group(b);
    if (kept == left) return;
    for (auto& [c, of] : group_of_)
      if (of == left) of = kept;
  }

  std::map<char32_t, std::size_t> group_of_;
  std::vector<std::vector<char32_t>> groups_;
};

}  // namespace

CharSet without_case(const CharSet& set) {
  static const Cases cases;
  std::vector<char32_t> all = cases.of(set);
  std::ranges::sort(all);
  return set.with(all);
}

}  // namespace sluice::grammar::regex
