#include "base/quote.h"

namespace sluice {

std::string quote(std::string_view text) {
  constexpr size_t kMaxBytes = 160;
  size_t length = text.size();
  if (length > kMaxBytes) {
    length = kMaxBytes;
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80)
      --length;  // not inside a character
  }
  std::string result = "'";
  for (const char c : text.substr(0, length)) {
    const auto byte = static_cast<unsigned char>(c);
    result += byte < 0x20 || byte == 0x7F ? '?' : c;
  }
  result += length < text.size() ? "...'" : "'";
  return result;
}

}  // namespace sluice
