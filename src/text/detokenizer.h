// Converts ids to text, one at a time.
#pragma once

#include <cstdint>
#include <string>

#include "base/utf8.h"
#include "text/tokenizer.h"

namespace sluice::text {

// The concatenated results of push() and finish() equal Tokenizer::decode of all ids, but no result ends
// inside a character. Keeps a reference to the tokenizer.
class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer, bool skip_special = true)
      : tokenizer_(tokenizer), skip_special_(skip_special) {}

  // The text that the id completes; may be empty.
  std::string push(std::int32_t id);
  // Ends the text: an incomplete character becomes U+FFFD. The next push starts a new text.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  bool skip_special_;
  Utf8Decoder decoder_;
};

}  // namespace sluice::text
