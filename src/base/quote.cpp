#include "base/quote.h"

namespace sluice {

std::string quote(std::string_view text) {
  constexpr size_t kMaxBytes = 160;
  size_t length = text.size();
  if (length > kMaxBytes) {
    length = kMaxBytes;
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80)
      --length;  // do not cut a character
  }
  std::string result = "'";
  for (size_t i = 0; i < length; ++i) {
    const unsigned char byte = text[i];
    // U+0080 to U+009F are control characters too, which terminals interpret.
    const bool late_control =
        byte == 0xC2 && i + 1 < length && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (late_control) ++i;
    result += byte < 0x20 || byte == 0x7F || late_control ? '?' : text[i];
  }
  result += length < text.size() ? "...'" : "'";
  return result;
}

}  // namespace sluice
