// Patterns that split a text into words before byte-pair encoding.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace sluice::text {

struct Match {
  std::size_t begin, end;  // in bytes; may be empty
};

class SplitPattern {
 public:
  virtual ~SplitPattern() = default;

  // Appends the matches in valid UTF-8 text, from left to right, without overlap. Safe to call from any
  // thread.
  virtual void find_all(std::string_view text, std::vector<Match>& matches) const = 0;
};

// Any regex, by PCRE2. Its Unicode version may be older than the tokenizers package's, and its dialect is
// Perl's; both matter only for rare characters and exotic syntax.
std::unique_ptr<SplitPattern> make_regex_pattern(std::string_view regex);

// The regexes of known models, as scanners over the tokenizers package's own character classes: exact, and
// several times faster. Null for any other regex.
std::unique_ptr<SplitPattern> make_known_pattern(std::string_view regex);

// A fixed string.
std::unique_ptr<SplitPattern> make_literal_pattern(std::string_view literal);

// Every single character of the class.
std::unique_ptr<SplitPattern> make_class_pattern(unsigned char_class);

// The regex of GPT-2, built into the ByteLevel pre-tokeniser.
extern const std::string_view kGpt2Regex;

}  // namespace sluice::text
