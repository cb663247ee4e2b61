#include "text/tokenizer.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/utf8.h"
#include "text/byte_level.h"

namespace sluice::text {
namespace {

constexpr std::string_view kInFile = "tokenizer.json";
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;  // positions are 32 bits wide

const Json& value_or_null(const Json& object, std::string_view key) {
  static const Json null;
  const Json* value = json_find(object, key, kInFile);
  return value == nullptr ? null : *value;
}

void check_decoder(const Json& decoder) {
  const auto type =
      decoder.is_null() ? "null" : json_get<std::string>(decoder, "type", "tokenizer.json: decoder");
  if (type != "ByteLevel")
    fail(ErrorKind::unsupported, "{}: the decoder {} is not supported, only ByteLevel is", kInFile,
         quote(type));
}

}  // namespace

struct Tokenizer::EncodeState {
  EncodeOptions options;
  Bpe::Workspace work;
  Pretokenizer::Words words;
  std::vector<std::int32_t> ids;
};

Tokenizer::Tokenizer(const Json& json) {
  const Json& model = value_or_null(json, "model");
  if (model.is_null()) fail(ErrorKind::checkpoint, "{}: the required key 'model' is missing", kInFile);
  check_decoder(value_or_null(json, "decoder"));
  normalizer_ = parse_normalizer(value_or_null(json, "normalizer"));
  pretokenizer_ = Pretokenizer(value_or_null(json, "pre_tokenizer"));
  read_vocabulary(model, vocabulary_);
  if (vocabulary_.size() == 0) fail(ErrorKind::checkpoint, "{}: the vocabulary is empty", kInFile);
  bpe_ = Bpe(model, vocabulary_);
  add_tokens(read_added_tokens(value_or_null(json, "added_tokens"), normalizer_, vocabulary_));
  read_post_processor(value_or_null(json, "post_processor"));
}

Tokenizer Tokenizer::parse(std::string_view json, std::string_view where) {
  return Tokenizer(parse_json(json, where));
}

void Tokenizer::add_tokens(std::vector<AddedToken> added) {
  const std::size_t size = vocabulary_.size();
  bytes_.resize(size);
  special_.resize(size);
  added_.resize(size);
  for (std::int32_t id = 0; id < vocabulary_.size(); ++id)
    bytes_[id] = ByteLevel::instance().bytes(vocabulary_.piece(id));
  std::vector<AddedToken> raw, normalized;
  for (AddedToken& token : added) {
    special_[token.id] = token.special;
    added_[token.id] = true;
    bytes_[token.id] = ByteLevel::instance().bytes(token.content);
    (token.normalized ? normalized : raw).push_back(std::move(token));
  }
  raw_tokens_ = TokenFinder(std::move(raw));
  normalized_tokens_ = TokenFinder(std::move(normalized));
}

void Tokenizer::read_post_processor(const Json& json) {
  if (json.is_null()) return;
  constexpr std::string_view kPlace = "tokenizer.json: post_processor";
  const auto type = json_get<std::string>(json, "type", kPlace);
  if (type == "ByteLevel") return;  // only trims offsets, which are not used here
  if (type == "TemplateProcessing") return read_template(json);
  if (type != "Sequence")
    fail(ErrorKind::unsupported,
         "{}: {} is not supported, only ByteLevel, TemplateProcessing and Sequence are", kPlace, quote(type));
  const Json* parts = json_find(json, "processors", kPlace);
  if (parts == nullptr || !parts->is_array())
    fail(ErrorKind::checkpoint, "{}: a Sequence needs the array 'processors'", kPlace);
  for (const Json& part : *parts) read_post_processor(part);
}

void Tokenizer::read_template(const Json& json) {
  constexpr std::string_view kPlace = "tokenizer.json: TemplateProcessing";
  const Json* single = json_find(json, "single", kPlace);
  const Json* tokens = json_find(json, "special_tokens", kPlace);
  if (single == nullptr || !single->is_array() || tokens == nullptr)
    fail(ErrorKind::checkpoint, "{}: the array 'single' and the object 'special_tokens' are required",
         kPlace);
  std::vector<std::int32_t> before, behind;
  int sequences = 0;
  for (const Json& part : *single) {
    if (json_find(part, "Sequence", kPlace) != nullptr) {
      ++sequences;
      continue;
    }
    const Json* special = json_find(part, "SpecialToken", kPlace);
    if (special == nullptr) fail(ErrorKind::checkpoint, "{}: expected Sequence or SpecialToken", kPlace);
    const auto name = json_get<std::string>(*special, "id", kPlace);
    const Json* token = json_find(*tokens, name, kPlace);
    if (token == nullptr)
      fail(ErrorKind::checkpoint, "{}: {} is not among its 'special_tokens'", kPlace, quote(name));
    for (const int id : json_get<std::vector<int>>(*token, "ids", kPlace)) {
      if (id < 0 || id >= vocab_size())
        fail(ErrorKind::checkpoint, "{}: {} has the id {}, expected 0..{}", kPlace, quote(name), id,
             vocab_size() - 1);
      (sequences == 0 ? before : behind).push_back(id);
    }
  }
  if (sequences != 1)
    fail(ErrorKind::unsupported, "{}: 'single' holds the text {} times, expected once", kPlace, sequences);
  prefix_.insert(prefix_.begin(), before.begin(), before.end());
  suffix_.insert(suffix_.end(), behind.begin(), behind.end());
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  if (text.size() > kMaxTextBytes)
    fail(ErrorKind::input, "the text to encode has {} bytes, at most {} are allowed", text.size(),
         kMaxTextBytes);
  EncodeState state = {options, Bpe::Workspace(text.size()), {}, {}};
  if (options.add_special_tokens) state.ids = prefix_;
  raw_tokens_.split(to_valid_utf8(text), options.special_as_text,
                    [&](std::string_view part, const AddedToken* token) {
                      if (token != nullptr)
                        state.ids.push_back(token->id);
                      else
                        encode_raw(part, state);
                    });
  if (options.add_special_tokens) state.ids.insert(state.ids.end(), suffix_.begin(), suffix_.end());
  return std::move(state.ids);
}

// Encodes text between two tokens that are matched before normalisation.
void Tokenizer::encode_raw(std::string_view text, EncodeState& state) const {
  std::string composed;
  if (normalizer_ == Normalizer::nfc) text = composed = nfc(text);
  normalized_tokens_.split(text, state.options.special_as_text,
                           [&](std::string_view part, const AddedToken* token) {
                             if (token != nullptr)
                               state.ids.push_back(token->id);
                             else
                               encode_words(part, state);
                           });
}

void Tokenizer::encode_words(std::string_view text, EncodeState& state) const {
  state.words.views.clear();
  state.words.prefixed.clear();
  pretokenizer_.split(text, state.words);
  for (const std::string_view word : state.words.views) bpe_.encode(word, vocabulary_, state.work, state.ids);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  std::string out;
  Utf8Decoder decoder;
  for (const std::int32_t id : ids)
    if (!(skip_special && is_special(id))) decoder.push(bytes(id), out);
  decoder.finish(out);
  return out;
}

std::string_view Tokenizer::bytes(std::int32_t id) const {
  return id >= 0 && id < vocab_size() ? std::string_view(bytes_[id]) : std::string_view();
}

bool Tokenizer::is_special(std::int32_t id) const {
  return id >= 0 && id < vocab_size() && special_[id];
}

bool Tokenizer::is_added(std::int32_t id) const {
  return id >= 0 && id < vocab_size() && added_[id];
}

}  // namespace sluice::text
