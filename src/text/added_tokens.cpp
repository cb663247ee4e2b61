#include "text/added_tokens.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/integer_cast.h"
#include "base/utf8.h"

namespace sluice::text {
namespace {

// Limits the time per byte of text that a hostile file can cause.
constexpr std::size_t kMaxTokenBytes = 1024;

std::size_t skip_space(std::string_view text, std::size_t at) {
  const CharClasses& classes = CharClasses::instance();
  while (at < text.size()) {
    const CodePoint c = code_point_at(text, at);
    if (!(classes(c.value) & kSpace)) break;
    at += c.length;
  }
  return at;
}

std::size_t skip_space_back(std::string_view text, std::size_t begin, std::size_t end) {
  const CharClasses& classes = CharClasses::instance();
  while (end > begin) {
    const CodePoint c = code_point_before(text, end);
    if (!(classes(c.value) & kSpace)) break;
    end -= c.length;
  }
  return end;
}

AddedToken read_token(const Json& json, Normalizer normalizer, Vocabulary& vocabulary) {
  constexpr std::string_view kWhere = "tokenizer.json: added_tokens";
  AddedToken token;
  token.content = json_get<std::string>(json, "content", kWhere);
  if (token.content.empty() || token.content.size() > kMaxTokenBytes)
    fail(ErrorKind::checkpoint, "{}: a content has {} bytes, expected 1..{}", kWhere, token.content.size(),
         kMaxTokenBytes);
  const auto id = json_get<std::int64_t>(json, "id", kWhere);
  const auto known = vocabulary.find(token.content);
  if (!known) vocabulary.add(token.content, id);
  if (known && *known != id)
    fail(ErrorKind::checkpoint, "{}: {} has the id {}, but {} in the vocabulary", kWhere,
         quote(token.content), id, *known);
  token.id = to_int(id);
  token.special = json_get_or<bool>(json, "special", false, kWhere);
  token.single_word = json_get_or<bool>(json, "single_word", false, kWhere);
  token.lstrip = json_get_or<bool>(json, "lstrip", false, kWhere);
  token.rstrip = json_get_or<bool>(json, "rstrip", false, kWhere);
  token.normalized = json_get_or<bool>(json, "normalized", !token.special, kWhere);
  if (token.normalized && normalizer == Normalizer::nfc) token.content = nfc(token.content);
  return token;
}

}  // namespace

TokenFinder::TokenFinder(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::sort(tokens_.begin(), tokens_.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.content < b.content; });
  const auto twin =
      std::adjacent_find(tokens_.begin(), tokens_.end(),
                         [](const AddedToken& a, const AddedToken& b) { return a.content == b.content; });
  if (twin != tokens_.end())
    fail(ErrorKind::checkpoint,
         "tokenizer.json: two added tokens are the same once normalised, ids {} and {}", twin->id,
         std::next(twin)->id);
  for (const AddedToken& token : tokens_) first_bytes_.set(static_cast<unsigned char>(token.content[0]));
}

const AddedToken* TokenFinder::longest_at(std::string_view text, std::size_t at) const {
  // The tokens that match the text so far are a range of the sorted list; each byte narrows it.
  const AddedToken* longest = nullptr;
  auto begin = tokens_.begin(), end = tokens_.end();
  for (std::size_t depth = 0; begin != end && at + depth < text.size(); ++depth) {
    const auto byte = static_cast<unsigned char>(text[at + depth]);
    const auto byte_of = [depth](const AddedToken& token) {
      return static_cast<unsigned char>(token.content[depth]);
    };
    begin = std::partition_point(begin, end, [&](const AddedToken& t) { return byte_of(t) < byte; });
    end = std::partition_point(begin, end, [&](const AddedToken& t) { return byte_of(t) <= byte; });
    if (begin != end && begin->content.size() == depth + 1) longest = &*begin++;
  }
  return longest;
}

bool TokenFinder::touches_word(std::string_view text, std::size_t begin, std::size_t end) {
  const CharClasses& classes = CharClasses::instance();
  const bool before = begin > 0 && (classes(code_point_before(text, begin).value) & kWord);
  const bool behind = end < text.size() && (classes(code_point_at(text, end).value) & kWord);
  return before || behind;
}

void TokenFinder::split(std::string_view text, bool special_as_text, Visitor visit) const {
  std::size_t done = 0, at = 0;  // everything before `done` is visited; the search continues at `at`
  std::size_t space_end = 0;     // end of the whitespace already scanned after a token
  while (!tokens_.empty() && at < text.size()) {
    if (!first_bytes_[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    const AddedToken* token = longest_at(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at, end = at + token->content.size();
    at = end;
    if (special_as_text && token->special) continue;
    if (token->single_word && touches_word(text, begin, end)) continue;
    // Whitespace taken by the previous token is not taken again.
    if (token->lstrip) begin = std::max(skip_space_back(text, done, begin), done);
    if (token->rstrip) end = space_end = end < space_end ? space_end : skip_space(text, end);
    if (begin >= end) continue;  // the previous token took all of it
    if (done < begin) visit(text.substr(done, begin - done), nullptr);
    visit(text.substr(begin, end - begin), token);
    done = end;
  }
  if (done < text.size()) visit(text.substr(done), nullptr);
}

std::vector<AddedToken> read_added_tokens(const Json& json, Normalizer normalizer, Vocabulary& vocabulary) {
  if (json.is_null()) return {};
  if (!json.is_array())
    fail(ErrorKind::checkpoint, "tokenizer.json: 'added_tokens' is {}, expected an array", json.type_name());
  std::vector<AddedToken> tokens;
  std::vector<bool> seen;
  for (const Json& entry : json) {
    AddedToken token = read_token(entry, normalizer, vocabulary);
    seen.resize(to_size(vocabulary.size()));
    if (seen[token.id])
      fail(ErrorKind::checkpoint, "tokenizer.json: the added token {} is listed twice", quote(token.content));
    seen[token.id] = true;
    tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace sluice::text
