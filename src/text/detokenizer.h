// Ids to text, one at a time.
#pragma once

#include <cstdint>
#include <string>

#include "base/utf8.h"
#include "text/tokenizer.h"

namespace sluice::text {

// Everything push() and finish() returned, joined, is what Tokenizer::decode makes of all the ids; but no
// return is ever cut inside a character. Keeps a reference to the tokenizer.
class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer, bool skip_special = true)
      : tokenizer_(tokenizer), skip_special_(skip_special) {}

  // The text that the id completes; may be empty.
  std::string push(std::int32_t id);
  // Ends the text: an unfinished character becomes U+FFFD. The next push starts anew.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  bool skip_special_;
  Utf8Decoder decoder_;
};

}  // namespace sluice::text
