// Tokens that are found in the text as they stand, before any splitting.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/json.h"
#include "text/normalizer.h"
#include "text/unicode.h"
#include "text/vocabulary.h"

namespace sluice::text {

struct AddedToken {
  std::int32_t id = 0;
  std::string content;       // as it is looked for: normalised if `normalized`
  bool special = false;      // skipped by decoding if asked
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the whitespace before it
  bool rstrip = false;       // takes the whitespace behind it
  bool normalized = false;   // looked for after normalisation
};

// Finds the leftmost, then longest, of a set of tokens.
class TokenFinder {
 public:
  // A token or, where it is null, the text between two tokens.
  using Visitor = FunctionRef<void(std::string_view text, const AddedToken* token)>;

  TokenFinder() = default;
  explicit TokenFinder(std::vector<AddedToken> tokens);

  // Visits the tokens in the text and the non-empty texts between them, from left to right. With
  // `special_as_text`, special tokens are text.
  void split(std::string_view text, bool special_as_text, Visitor visit) const;

 private:
  const AddedToken* longest_at(std::string_view text, std::size_t at) const;
  static bool touches_word(std::string_view text, std::size_t begin, std::size_t end);

  std::vector<AddedToken> tokens_;  // sorted by content
  std::bitset<256> first_bytes_;
};

// The `added_tokens` of a tokenizer.json. Those that are not in the vocabulary yet are put there.
std::vector<AddedToken> read_added_tokens(const Json& json, Normalizer normalizer, Vocabulary& vocabulary);

}  // namespace sluice::text
