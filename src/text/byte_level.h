// GPT-2's byte alphabet: every byte has one printable character, in which vocabularies are written.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace sluice::text {

class ByteLevel {
 public:
  static const ByteLevel& instance();

  // The character of a byte, as UTF-8.
  const std::string& character(unsigned char byte) const { return characters_[byte]; }
  // The piece for the bytes.
  std::string piece(std::string_view bytes) const;
  // The bytes of a piece; a piece with a character outside the alphabet is taken as UTF-8.
  std::string bytes(std::string_view piece) const;

 private:
  ByteLevel();

  std::array<std::string, 256> characters_;
  std::array<short, 0x144> byte_of_;  // by code point, -1 outside the alphabet
};

}  // namespace sluice::text
