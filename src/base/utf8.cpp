#include "base/utf8.h"

namespace sluice {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace

void append_utf8(std::string& out, char32_t c) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

void Utf8Decoder::push(std::string_view bytes, std::string& out) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const unsigned char byte = bytes[at];
    if (wanted_ == 0) {
      if (byte < 0x80) {
        std::size_t end = at + 1;
        while (end < bytes.size() && static_cast<unsigned char>(bytes[end]) < 0x80) ++end;
        out.append(bytes, at, end - at);
        at = end;
      } else {
        begin(byte, out);
        ++at;
      }
    } else if (byte < low_ || byte > high_) {
      out += kReplacement;
      wanted_ = 0;  // the byte may begin the next character, so it is processed again
    } else {
      held_[held_count_++] = bytes[at++];
      low_ = 0x80, high_ = 0xBF;
      if (held_count_ == wanted_) {
        out.append(held_, held_count_);
        wanted_ = 0;
      }
    }
  }
}

void Utf8Decoder::begin(unsigned char lead, std::string& out) {
  if (lead < 0xC2 || lead > 0xF4) {
    out += kReplacement;
    return;
  }
  wanted_ = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The range of the second byte excludes overlong forms, surrogates and values above U+10FFFF.
  low_ = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  high_ = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  held_[0] = lead;
  held_count_ = 1;
}

void Utf8Decoder::finish(std::string& out) {
  if (wanted_ != 0) out += kReplacement;
  wanted_ = 0;
}

std::string to_valid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  Utf8Decoder decoder;
  decoder.push(bytes, out);
  decoder.finish(out);
  return out;
}

}  // namespace sluice
