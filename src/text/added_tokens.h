// Tokens that are matched in the text before any splitting.
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
  std::string content;       // the text to match: normalised if `normalized`
  bool special = false;      // omitted by decoding on request
  bool single_word = false;  // matches only between non-word characters
  bool lstrip = false;       // takes the whitespace before it
  bool rstrip = false;       // takes the whitespace after it
  bool normalized = false;   // matched after normalisation
};

// Finds the leftmost, then longest, of a set of tokens.
class TokenFinder {
 public:
  // Called with a token, or with null and the text between two tokens.
  using Visitor = FunctionRef<void(std::string_view text, const AddedToken* token)>;

  TokenFinder() = default;
  explicit TokenFinder(std::vector<AddedToken> tokens);

  // Visits the tokens in the text and the non-empty texts between them, from left to right. With
  // `special_as_text`, special tokens are treated as text.
  void split(std::string_view text, bool special_as_text, Visitor visit) const;

 private:
  const AddedToken* longest_at(std::string_view text, std::size_t at) const;
  static bool touches_word(std::string_view text, std::size_t begin, std::size_t end);

  std::vector<AddedToken> tokens_;  // sorted by content
  std::bitset<256> first_bytes_;
};

// Reads the `added_tokens` of a tokenizer.json and adds those that are missing to the vocabulary.
std::vector<AddedToken> read_added_tokens(const Json& json, Normalizer normalizer, Vocabulary& vocabulary);

}  // namespace sluice::text
