// Text to token ids and back, as described by a Hugging Face tokenizer.json with a byte-level BPE model.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/normalizer.h"
#include "text/pretokenizer.h"
#include "text/vocabulary.h"

namespace sluice::text {

struct EncodeOptions {
  bool add_special_tokens = false;  // what the file's post-processor adds to a text, e.g. BOS
  bool special_as_text = false;     // treats "<|im_end|>" in the text as plain characters: for untrusted text
};

// Immutable once built; all members are safe to call from any thread.
class Tokenizer {
 public:
  explicit Tokenizer(const Json& json);
  // Parses the text of a tokenizer.json; `where` names it in messages.
  static Tokenizer parse(std::string_view json, std::string_view where = "tokenizer.json");

  // The same ids as the tokenizers package. Bytes that are not UTF-8 are first replaced by U+FFFD, as
  // Python's bytes.decode(errors="replace") does.
  std::vector<std::int32_t> encode(std::string_view text, EncodeOptions options = {}) const;
  // The same text as the tokenizers package; ids without a token are skipped.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special = true) const;

  // One past the largest id; logits beyond it belong to no token.
  std::int32_t vocab_size() const { return vocabulary_.size(); }
  // The id of a piece as written in the file, including added tokens.
  std::optional<std::int32_t> id(std::string_view piece) const { return vocabulary_.find(piece); }
  // The piece as written in the file; empty for an id without a token.
  std::string_view piece(std::int32_t id) const { return vocabulary_.piece(id); }
  // The bytes of the id in decoded text, which may be a part of a character.
  std::string_view bytes(std::int32_t id) const;
  bool is_special(std::int32_t id) const;
  // Whether the token is matched in the text before splitting: special ones, and others such as <think>.
  bool is_added(std::int32_t id) const;

 private:
  struct EncodeState;

  void encode_raw(std::string_view text, EncodeState& state) const;
  void encode_words(std::string_view text, EncodeState& state) const;
  void add_tokens(std::vector<AddedToken> added);
  void read_post_processor(const Json& json);
  void read_template(const Json& json);

  Vocabulary vocabulary_;
  Normalizer normalizer_ = Normalizer::none;
  TokenFinder raw_tokens_, normalized_tokens_;
  Pretokenizer pretokenizer_;
  Bpe bpe_;
  std::vector<std::int32_t> prefix_, suffix_;  // from the post-processor
  std::vector<std::string> bytes_;             // by id
  std::vector<bool> special_, added_;          // by id
};

}  // namespace sluice::text
