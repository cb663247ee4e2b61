// Bytes up to the first record separator (0x1E) are a schema, a regular expression or a grammar; the rest is
// a text to match: masks must agree with single tokens, and nothing may take long.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/error.h"
#include "sluice/grammar.h"

namespace sluice::fuzz {

inline const std::shared_ptr<const GrammarVocabulary>& vocabulary() {
  static const auto shared = [] {
    std::vector<std::string> bytes = {""};
    for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
    for (const char* piece :
         {"\":", "\", \"", "{\"", "[1", "ab", "abc", "\xE6\x97", "\\u00", "    ", "\"}", "]]"})
      bytes.emplace_back(piece);
    const std::int32_t stop[] = {0};
    return std::make_shared<const GrammarVocabulary>(bytes, stop);
  }();
  return shared;
}

inline GrammarLimits small_limits() {
  GrammarLimits limits;
  limits.nodes = 20'000;
  limits.terms = 50'000;
  limits.configurations = 100'000;
  limits.work_per_step = 5'000;
  limits.compile_time = std::chrono::milliseconds(500);
  return limits;
}

inline void follow_text(GrammarSource::Kind kind, const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.find('\x1E');
  const std::string_view text = end == input.npos ? std::string_view() : input.substr(end + 1);
  try {
    const GrammarSource source{.kind = kind, .text = std::string(input.substr(0, end)), .choices = {}};
    Matcher matcher(std::make_shared<const Grammar>(source, vocabulary(), small_limits()));
    std::vector<std::uint32_t> bits(matcher.mask_words());
    for (std::size_t at = 0; at < text.size() && at < 64; ++at) {
      matcher.mask(bits);
      for (std::int32_t token = 0; token < vocabulary()->size(); ++token) {
        const bool in_mask = (bits[static_cast<std::size_t>(token) >> 5] >> (token & 31) & 1) != 0;
        if (in_mask != matcher.allows(token)) __builtin_trap();
      }
      if (matcher.accept_text(text.substr(at, 1)) == 0) break;
    }
  } catch (const Error&) {
  }
}

}  // namespace sluice::fuzz
