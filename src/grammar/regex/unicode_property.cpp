#include "grammar/regex/unicode_property.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"

namespace sluice::grammar::regex {
namespace {

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

// Names are compared without case, blanks, hyphens and underscores.
std::string loose(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c == '_' || c == '-' || c == ' ') continue;
    result += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

// PCRE2 knows only the short names of general categories.
std::string_view short_category(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"casedletter", "L&"},
      {"closepunctuation", "Pe"},
      {"cntrl", "Cc"},
      {"combiningmark", "M"},
      {"connectorpunctuation", "Pc"},
      {"control", "Cc"},
      {"currencysymbol", "Sc"},
      {"dashpunctuation", "Pd"},
      {"decimalnumber", "Nd"},
      {"digit", "Nd"},
      {"enclosingmark", "Me"},
      {"finalpunctuation", "Pf"},
      {"format", "Cf"},
      {"initialpunctuation", "Pi"},
      {"lc", "L&"},
      {"letter", "L"},
      {"letternumber", "Nl"},
      {"lineseparator", "Zl"},
      {"lowercaseletter", "Ll"},
      {"mark", "M"},
      {"mathsymbol", "Sm"},
      {"modifierletter", "Lm"},
      {"modifiersymbol", "Sk"},
      {"nonspacingmark", "Mn"},
      {"number", "N"},
      {"openpunctuation", "Ps"},
      {"other", "C"},
      {"otherletter", "Lo"},
      {"othernumber", "No"},
      {"otherpunctuation", "Po"},
      {"othersymbol", "So"},
      {"paragraphseparator", "Zp"},
      {"privateuse", "Co"},
      {"punct", "P"},
      {"punctuation", "P"},
      {"separator", "Z"},
      {"spaceseparator", "Zs"},
      {"spacingmark", "Mc"},
      {"surrogate", "Cs"},
      {"symbol", "S"},
      {"titlecaseletter", "Lt"},
      {"unassigned", "Cn"},
      {"uppercaseletter", "Lu"},
  };
  const auto known = std::ranges::find(kNames, name, &std::pair<std::string_view, std::string_view>::first);
  return known == std::end(kNames) ? std::string_view() : known->second;
}

// Spellings that PCRE2 may know, the best first: what a bare name means for scripts differs between its
// versions.
std::vector<std::string> spellings(std::string_view name) {
  std::string kind;
  if (const std::size_t equals = name.find('='); equals != std::string_view::npos) {
    kind = loose(name.substr(0, equals));
    if (kind.empty()) return {};
    name.remove_prefix(equals + 1);
  }
  const std::string value = loose(name);
  const std::string_view category = short_category(value);
  if (kind == "scx" || kind == "scriptextensions") return {"scx:" + value};
  if (kind == "sc" || kind == "script") return {"sc:" + value, value};
  constexpr std::size_t kLongestCategory = 2;
  if (!kind.empty() && kind != "gc" && kind != "generalcategory") return {};
  if (!category.empty()) return {std::string(category)};
  if (name.size() <= kLongestCategory) return {std::string(name)};
  if (!kind.empty()) return {};
  return {"sc:" + value, value};
}

std::unique_ptr<pcre2_code, Free> compile(const std::string& name) {
  const std::string pattern = "(\\P{" + name + "}*+)(\\p{" + name + "}*+)";
  int error = 0;
  std::size_t offset = 0;
  return std::unique_ptr<pcre2_code, Free>(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()),
                                                         pattern.size(), PCRE2_UTF | PCRE2_ANCHORED, &error,
                                                         &offset, nullptr));
}

// Every character is matched, in runs of those that have the property and those that do not.
CharSet characters_of(const pcre2_code& code) {
  std::string all;
  std::vector<std::pair<std::size_t, char32_t>> blocks;  // where some of the characters are in the text
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c == 0xD800) c = 0xE000;
    if (c % 64 == 0) blocks.emplace_back(all.size(), c);
    append_utf8(all, c);
  }
  const auto character_at = [&](std::size_t at) {
    auto block = std::ranges::upper_bound(blocks, at, {}, &std::pair<std::size_t, char32_t>::first);
    --block;
    char32_t c = block->second;
    for (std::size_t begin = block->first; begin < at; ++c) begin += code_point_at(all, begin).length;
    return c;
  };
  const std::unique_ptr<pcre2_match_data, Free> data(pcre2_match_data_create(3, nullptr));
  if (!data) fail(ErrorKind::resource, "no memory left for a regular expression");
  CharSet set;
  for (std::size_t at = 0; at < all.size();) {
    const int groups = pcre2_match(&code, reinterpret_cast<PCRE2_SPTR>(all.data()), all.size(), at,
                                   PCRE2_NO_UTF_CHECK, data.get(), nullptr);
    if (groups < 3) fail(ErrorKind::internal, "a Unicode property cannot be looked up: {}", groups);
    const std::size_t* bounds = pcre2_get_ovector_pointer(data.get());
    const std::size_t begin = bounds[4], end = bounds[5];
    std::size_t last = end;
    while (last > begin && (static_cast<unsigned char>(all[--last]) & 0xC0) == 0x80) {
    }
    if (begin < end) set.add(character_at(begin), character_at(last));
    at = end;
  }
  return set;
}

}  // namespace

std::optional<CharSet> unicode_property(std::string_view name) {
  static std::mutex mutex;
  static std::map<std::string, CharSet> known;
  const bool plain = std::ranges::all_of(name, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           c == '-' || c == ' ' || c == '&' || c == '=';
  });
  constexpr std::size_t kLongest = 64;
  if (!plain || name.empty() || name.size() > kLongest) return std::nullopt;
  const std::lock_guard lock(mutex);
  for (const std::string& spelling : spellings(name)) {
    if (const auto found = known.find(spelling); found != known.end()) return found->second;
    const auto code = compile(spelling);
    if (code) return known.emplace(spelling, characters_of(*code)).first->second;
  }
  return std::nullopt;
}

}  // namespace sluice::grammar::regex
