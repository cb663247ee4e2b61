#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <string>

#include "base/error.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "text/split_pattern.h"

namespace sluice::text {
namespace {

// Patterns come from files, so their cost is limited: these stop catastrophic backtracking after
// milliseconds.
constexpr std::uint32_t kMatchLimit = 100'000;
constexpr std::uint32_t kHeapLimitKib = 64 * 1024;
constexpr std::size_t kMaxRegexBytes = 16 * 1024;

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

template <class T>
Owned<T> owned(T* pointer) {
  if (pointer == nullptr) fail(ErrorKind::resource, "no memory left for a regular expression");
  return Owned<T>(pointer);
}

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> buffer = {};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

class RegexPattern : public SplitPattern {
 public:
  explicit RegexPattern(std::string_view regex) : regex_(regex) {
    if (regex.size() > kMaxRegexBytes)
      fail(ErrorKind::unsupported, "a pre-tokenizer regex has {} bytes, at most {} are supported",
           regex.size(), kMaxRegexBytes);
    int error = 0;
    std::size_t offset = 0;
    pcre2_code* code =
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(regex.data()), regex.size(),
                      PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
    if (code == nullptr)
      fail(ErrorKind::checkpoint, "the pre-tokenizer regex {} is invalid at byte {}: {}", quote(regex),
           offset, message_of(error));
    code_.reset(code);
    // Without JIT, matching is slower but has the same results, so a failure is ignored.
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    limits_ = owned(pcre2_match_context_create(nullptr));
    pcre2_set_match_limit(limits_.get(), kMatchLimit);
    pcre2_set_depth_limit(limits_.get(), kMatchLimit);
    pcre2_set_heap_limit(limits_.get(), kHeapLimitKib);
  }

  void find_all(std::string_view text, std::vector<Match>& matches) const override {
    const Owned<pcre2_match_data> data = owned(pcre2_match_data_create(1, nullptr));
    std::size_t at = 0, last_end = std::string_view::npos;
    while (at <= text.size() && find(text, at, data.get())) {
      const std::size_t* bounds = pcre2_get_ovector_pointer(data.get());
      const Match match = {bounds[0], bounds[1]};
      if (match.begin < at || match.end < match.begin)
        break;  // \K in a lookaround can move a match backwards
      if (match.begin == match.end && match.end == last_end) {
        // An empty match right after the last one would repeat forever: skip one character.
        if (match.end >= text.size()) break;
        at = match.end + code_point_at(text, match.end).length;
        continue;
      }
      matches.push_back(match);
      at = last_end = match.end;
    }
  }

 private:
  bool find(std::string_view text, std::size_t at, pcre2_match_data* data) const {
    const auto search = [&](std::uint32_t options) {
      return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                         options | PCRE2_NO_UTF_CHECK, data, limits_.get());
    };
    int result = search(0);
    // The compiled matcher has a small fixed stack; the interpreter uses the heap.
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = search(PCRE2_NO_JIT);
    if (result == PCRE2_ERROR_NOMATCH) return false;
    if (result < 0)
      fail(ErrorKind::unsupported, "the pre-tokenizer regex {} cannot be matched at byte {} of a text: {}",
           quote(regex_), at, message_of(result));
    return true;
  }

  std::string regex_;
  Owned<pcre2_code> code_;
  Owned<pcre2_match_context> limits_;
};

}  // namespace

std::unique_ptr<SplitPattern> make_regex_pattern(std::string_view regex) {
  return std::make_unique<RegexPattern>(regex);
}

}  // namespace sluice::text
