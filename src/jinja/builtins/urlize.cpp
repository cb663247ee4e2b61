// Converts addresses in text to links, as jinja2's urlize does.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <memory>
#include <set>

#include "base/integer_cast.h"
#include "jinja/builtins/builtins.h"
#include "jinja/builtins/parameters.h"
#include "jinja/operators.h"
#include "jinja/repr.h"
#include "jinja/unicode.h"

namespace sluice::jinja::builtins {
namespace {

// A regular expression of this file; they are short, so matching ends soon.
class AddressPattern {
 public:
  explicit AddressPattern(std::string_view source, std::uint32_t options = 0) {
    int error = 0;
    std::size_t offset = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY | options, &error, &offset,
                              nullptr));
    if (code_ == nullptr) fault("a pattern does not compile at {}", offset);
  }

  bool matches(std::string_view text) const {
    const std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> data(
        pcre2_match_data_create_from_pattern(code_.get(), nullptr), pcre2_match_data_free);
    return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0, data.get(),
                       nullptr) >= 0;
  }

 private:
  std::unique_ptr<pcre2_code, void (*)(pcre2_code*)> code_{nullptr, pcre2_code_free};
};

bool is_web_address(std::string_view text) {
  static const AddressPattern kPattern(
      R"(^((https?://|www\.)(([\w%-]+\.)+)?([a-z]{2,63}|xn--[\w%]{2,59}))"
      R"(|([\w%-]{2,63}\.)+(com|net|int|edu|gov|org|info|mil))"
      R"(|(https?://)((([\d]{1,3})(\.[\d]{1,3}){3})|(\[([\da-f]{0,4}:){2}([\da-f]{0,4}:?){1,6}]))))"
      R"((?::[\d]{1,5})?(?:[/?#]\S*)?$)",
      PCRE2_CASELESS);
  return kPattern.matches(text);
}

bool is_mail_address(std::string_view text) {
  static const AddressPattern kPattern(R"(^\S+@\w[\w.-]*\.\w+$)");
  return kPattern.matches(text);
}

// Removes prefixes or suffixes in `parts` from the text, repeatedly.
std::string strip_affixes(std::string& text, std::initializer_list<std::string_view> parts, bool front) {
  const auto found = [&](std::string_view part) {
    return front ? text.starts_with(part) : text.ends_with(part);
  };
  for (std::string taken;;) {
    const auto* part = std::find_if(parts.begin(), parts.end(), found);
    if (part == parts.end()) return taken;
    taken.insert(front ? taken.size() : 0, *part);
    text.erase(front ? 0 : text.size() - part->size(), part->size());
  }
}

std::size_t occurrences(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size()) ++found;
  return found;
}

// Closing brackets belong to an address if it contains the opening ones.
void balance(std::string& middle, std::string& tail) {
  constexpr std::string_view kPairs[][2] = {{"(", ")"}, {"<", ">"}, {"&lt;", "&gt;"}};
  for (const auto& [open, close] : kPairs) {
    const std::size_t opened = occurrences(middle, open);
    if (opened <= occurrences(middle, close)) continue;
    for (std::size_t left = std::min(opened, occurrences(tail, close)); left > 0; --left) {
      const std::size_t end = tail.find(close) + close.size();
      middle += tail.substr(0, end);
      tail.erase(0, end);
    }
  }
}

struct LinkStyle {
  std::int64_t longest = -1;  // of the shown text, in characters; negative: unlimited
  std::string attributes;
  Values schemes;

  std::string link(const std::string& to, const std::string& shown) const {
    return "<a href=\"" + to + "\"" + attributes + ">" + shown + "</a>";
  }
  std::string cut(const std::string& text) const {
    const std::vector<std::size_t> offsets = code_point_offsets(text);
    if (longest < 0 || offsets.size() - 1 <= to_size(longest)) return text;
    return text.substr(0, offsets[longest]) + "...";
  }
};

std::string linked(const std::string& word, const LinkStyle& style) {
  constexpr std::string_view kMail = "mailto:";
  if (is_web_address(word)) {
    const bool whole = word.starts_with("https://") || word.starts_with("http://");
    return style.link(whole ? word : "https://" + word, style.cut(word));
  }
  if (word.starts_with(kMail) && is_mail_address(std::string_view(word).substr(kMail.size())))
    return "<a href=\"" + word + "\">" + word.substr(kMail.size()) + "</a>";
  const bool mail = word.find('@') != std::string::npos && !word.starts_with("www.") &&
                    word.find(':') == std::string::npos && is_mail_address(word);
  if (mail) return "<a href=\"mailto:" + word + "\">" + word + "</a>";
  std::string result = word;
  for (const Value& scheme : style.schemes)
    if (result != scheme.text() && result.starts_with(scheme.text())) result = style.link(result, result);
  return result;
}

std::string urlized(Budget& budget, std::string_view text, const LinkStyle& style) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const bool blank = is_space(next_code_point(text, at));
    for (std::size_t next = at; next < text.size() && is_space(next_code_point(text, next)) == blank;
         at = next) {
    }
    std::string middle(text.substr(begin, at - begin));
    budget.grow(middle.size());
    if (!blank) {
      const std::string head = strip_affixes(middle, {"(", "<", "&lt;"}, true);
      std::string tail = strip_affixes(middle, {")", ">", ".", ",", "&gt;"}, false);
      balance(middle, tail);
      middle = fmt::format("{}{}{}", head, linked(middle, style), tail);
    }
    result += middle;
    if (result.size() > budget.limits().output_bytes) budget.grow(result.size());
  }
  return result;
}

Values schemes_of(Budget& budget, const Value* given) {
  static const AddressPattern kScheme(R"(^([\w.+-]{2,}:(/){0,2})$)");
  Values schemes = given != nullptr ? iterate(budget, *given) : Values();
  for (const Value& scheme : schemes)
    if (!scheme.is_text() || !kScheme.matches(scheme.text()))
      fault("{} is not a valid URI scheme prefix.", repr(budget, scheme));
  return schemes;
}

Value urlize(Runtime& runtime, const Value& value, const Call& call) {
  Parameters given(call, {"trim_url_limit", "nofollow", "target", "rel", "extra_schemes"});
  Budget& budget = runtime.budget();
  std::set<std::string> relations = {"noopener"};
  if (given.truth(1, false)) relations.insert("nofollow");
  const std::string text = given.given(3) ? given.text(3) : "";
  for (std::size_t at = 0; (at = text.find_first_not_of(" \t\n\r\f\v", at)) != std::string::npos;) {
    const std::size_t end = std::min(text.find_first_of(" \t\n\r\f\v", at), text.size());
    relations.insert(text.substr(at, end - at));
    at = end;
  }
  std::string all;
  for (const std::string& relation : relations) all += (all.empty() ? "" : " ") + relation;
  LinkStyle style;
  style.longest = given.given(0) ? given.integer(0, -1) : -1;
  style.attributes = " rel=\"" + escape(budget, Value(all)).text() + "\"";
  if (given.given(2) && !given.text(2).empty())
    style.attributes += " target=\"" + escape(budget, given.value(2)).text() + "\"";
  style.schemes = schemes_of(budget, given.given(4));
  return Value(urlized(budget, escape(budget, value).text(), style));
}

}  // namespace

const Builtins& urlize_filters() {
  static const Builtins kFilters = {{"urlize", urlize}};
  return kFilters;
}

}  // namespace sluice::jinja::builtins
