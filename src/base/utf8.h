// UTF-8: reading valid text, and making arbitrary bytes valid.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice {

struct CodePoint {
  char32_t value;
  std::uint32_t length;  // in bytes
};

// The code point that starts at text[at]; text must be valid UTF-8.
inline CodePoint code_point_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (byte(1) & 0x3Fu), 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu), 3};
  return {(lead & 0x07) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 | (byte(3) & 0x3Fu), 4};
}

// The code point that ends at text[end - 1]; text must be valid UTF-8 and end > 0.
inline CodePoint code_point_before(std::string_view text, std::size_t end) {
  std::size_t at = end - 1;
  while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return code_point_at(text, at);
}

void append_utf8(std::string& out, char32_t c);

// Converts a stream of arbitrary bytes to valid UTF-8: holds back an incomplete character, and replaces
// invalid bytes by U+FFFD, one for each maximal prefix of a character, as Python's and Rust's lossy decoding
// do.
class Utf8Decoder {
 public:
  void push(std::string_view bytes, std::string& out);
  // Ends the stream: an incomplete character becomes U+FFFD.
  void finish(std::string& out);

 private:
  void begin(unsigned char lead, std::string& out);

  char held_[4] = {};
  int held_count_ = 0;
  int wanted_ = 0;                       // length of the character held back, 0 between characters
  unsigned char low_ = 0, high_ = 0xBF;  // range of its next byte
};

std::string to_valid_utf8(std::string_view bytes);

}  // namespace sluice
