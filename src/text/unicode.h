// Character data as in the tokenizers package: classes for its regexes, canonical (de)composition for NFC.
#pragma once

#include <array>
#include <cstdint>

namespace sluice::text {

// Bits of a character's classes, in the order in which tools/tables/unicode_tables.py writes them.
enum CharClass : std::uint16_t {
  kLetter = 1 << 0,       // \p{L}
  kNumber = 1 << 1,       // \p{N}
  kMark = 1 << 2,         // \p{M}
  kPunctuation = 1 << 3,  // \p{P}
  kSymbol = 1 << 4,       // \p{S}
  kSpace = 1 << 5,        // \s
  kWord = 1 << 6,         // \w
  kNumeric = 1 << 7,      // char::is_numeric of Rust, which has a later Unicode version than \p{N}
  kNfcUnsafe = 1 << 8,    // may change, or change its neighbours, under NFC
};

// Class lookup. Immutable and shared: instance() builds the table once.
class CharClasses {
 public:
  static const CharClasses& instance();

  std::uint16_t operator()(char32_t c) const { return c < bmp_.size() ? bmp_[c] : search(c); }

 private:
  CharClasses();
  static std::uint16_t search(char32_t c);

  std::array<std::uint16_t, 0x10000> bmp_;
};

// One step of canonical decomposition: `code_point` is `first` followed by `second` (0: by nothing).
struct Decomposition {
  char32_t code_point;
  char32_t first;
  char32_t second;
  bool composes;  // NFC composes the pair again
};

// Null if the character has no canonical decomposition; Hangul syllables are computed and not listed.
const Decomposition* decomposition(char32_t c);
// The character that NFC makes of the pair, 0 if none; Hangul not included.
char32_t composition(char32_t first, char32_t second);
// Canonical combining class.
int combining_class(char32_t c);

}  // namespace sluice::text
