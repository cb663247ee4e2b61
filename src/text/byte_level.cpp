#include "text/byte_level.h"

#include "base/utf8.h"

namespace sluice::text {

const ByteLevel& ByteLevel::instance() {
  static const ByteLevel table;
  return table;
}

ByteLevel::ByteLevel() {
  byte_of_.fill(-1);
  char32_t next_substitute = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
    const char32_t c = printable ? static_cast<char32_t>(byte) : next_substitute++;
    append_utf8(characters_[byte], c);
    byte_of_[c] = static_cast<short>(byte);
  }
}

std::string ByteLevel::piece(std::string_view bytes) const {
  std::string out;
  for (const char byte : bytes) out += character(byte);
  return out;
}

std::string ByteLevel::bytes(std::string_view piece) const {
  std::string out;
  for (std::size_t at = 0; at < piece.size();) {
    const CodePoint c = code_point_at(piece, at);
    if (c.value >= byte_of_.size() || byte_of_[c.value] < 0) return std::string(piece);
    out += static_cast<char>(byte_of_[c.value]);
    at += c.length;
  }
  return out;
}

}  // namespace sluice::text
