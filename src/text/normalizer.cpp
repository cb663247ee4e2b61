#include "text/normalizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "text/unicode.h"

namespace sluice::text {
namespace {

// Hangul syllables are composed arithmetically: leading consonant, vowel, optional trailing consonant.
constexpr char32_t kSyllableBase = 0xAC00, kLeadBase = 0x1100, kVowelBase = 0x1161, kTrailBase = 0x11A7;
constexpr char32_t kLeads = 19, kVowels = 21, kTrails = 28, kSyllables = kLeads * kVowels * kTrails;

struct Character {
  char32_t value;
  int combining_class;
};

void append_decomposed(char32_t c, std::vector<Character>& out) {
  if (c - kSyllableBase < kSyllables) {
    const char32_t index = c - kSyllableBase;
    out.push_back({kLeadBase + index / (kVowels * kTrails), 0});
    out.push_back({kVowelBase + index / kTrails % kVowels, 0});
    if (index % kTrails != 0) out.push_back({kTrailBase + index % kTrails, 0});
  } else if (const Decomposition* d = decomposition(c)) {
    append_decomposed(d->first, out);
    if (d->second != 0) append_decomposed(d->second, out);
  } else {
    out.push_back({c, combining_class(c)});
  }
}

char32_t compose(char32_t first, char32_t second) {
  if (first - kLeadBase < kLeads && second - kVowelBase < kVowels)
    return kSyllableBase + ((first - kLeadBase) * kVowels + (second - kVowelBase)) * kTrails;
  const bool open_syllable = first - kSyllableBase < kSyllables && (first - kSyllableBase) % kTrails == 0;
  if (open_syllable && second > kTrailBase && second < kTrailBase + kTrails)
    return first + (second - kTrailBase);
  return composition(first, second);
}

// Orders marks between two starters by class; equal classes keep their order.
void reorder(std::vector<Character>& characters) {
  auto begin = characters.begin();
  while (begin != characters.end()) {
    if (begin->combining_class == 0) {
      ++begin;
      continue;
    }
    const auto end =
        std::find_if(begin, characters.end(), [](const Character& c) { return c.combining_class == 0; });
    std::stable_sort(begin, end, [](const Character& a, const Character& b) {
      return a.combining_class < b.combining_class;
    });
    begin = end;
  }
}

void append_composed(const std::vector<Character>& characters, std::string& out) {
  std::vector<Character> composed;
  std::ptrdiff_t starter = -1;
  for (const Character& c : characters) {
    if (starter >= 0) {
      // A mark of the same or a higher class, or a starter in between, blocks the composition.
      const bool adjacent = starter + 1 == std::ssize(composed);
      if (adjacent || composed.back().combining_class < c.combining_class) {
        if (const char32_t joined = compose(composed[starter].value, c.value)) {
          composed[starter].value = joined;
          continue;
        }
      }
    }
    if (c.combining_class == 0) starter = std::ssize(composed);
    composed.push_back(c);
  }
  for (const Character& c : composed) append_utf8(out, c.value);
}

}  // namespace

Normalizer parse_normalizer(const Json& json) {
  if (json.is_null()) return Normalizer::none;
  const auto type = json_get<std::string>(json, "type", "tokenizer.json: normalizer");
  if (type == "NFC") return Normalizer::nfc;
  if (type != "Sequence")
    fail(ErrorKind::unsupported, "tokenizer.json: the normalizer {} is not supported, only NFC is",
         quote(type));
  const Json* parts = json_find(json, "normalizers", "tokenizer.json: normalizer");
  if (parts == nullptr || !parts->is_array())
    fail(ErrorKind::checkpoint, "tokenizer.json: normalizer: a Sequence needs the array 'normalizers'");
  Normalizer result = Normalizer::none;
  for (const Json& part : *parts)
    if (parse_normalizer(part) == Normalizer::nfc) result = Normalizer::nfc;
  return result;
}

std::string nfc(std::string_view text) {
  const CharClasses& classes = CharClasses::instance();
  std::string out;
  out.reserve(text.size());
  std::vector<Character> characters;
  std::size_t copied = 0, previous = 0, at = 0;
  while (at < text.size()) {
    CodePoint c = code_point_at(text, at);
    if (!(classes(c.value) & kNfcUnsafe)) {
      previous = at;
      at += c.length;
      continue;
    }
    // What may change is bounded by the previous and the next safe character.
    const std::size_t begin = std::max(previous, copied);
    out.append(text, copied, begin - copied);
    characters.clear();
    std::size_t end = begin;
    while (end < text.size()) {
      c = code_point_at(text, end);
      if (end > at && !(classes(c.value) & kNfcUnsafe)) break;
      append_decomposed(c.value, characters);
      end += c.length;
    }
    reorder(characters);
    append_composed(characters, out);
    copied = previous = at = end;
  }
  out.append(text, copied, text.size() - copied);
  return out;
}

}  // namespace sluice::text
