// The first byte chooses a front end, bytes up to the first NUL are a schema, a regular expression or a
// grammar, and the rest is a text to follow through it: masks must agree with single tokens, and nothing may
// take long.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/error.h"
#include "sluice/grammar.h"

namespace {

const std::shared_ptr<const sluice::GrammarVocabulary>& vocabulary() {
  static const auto shared = [] {
    std::vector<std::string> bytes = {""};
    for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
    for (const char* piece :
         {"\":", "\", \"", "{\"", "[1", "ab", "abc", "\xE6\x97", "\\u00", "    ", "\"}", "]]"})
      bytes.emplace_back(piece);
    const std::int32_t stop[] = {0};
    return std::make_shared<const sluice::GrammarVocabulary>(bytes, stop);
  }();
  return shared;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  constexpr std::array kKinds = {GrammarSource::Kind::json_schema, GrammarSource::Kind::regex,
                                 GrammarSource::Kind::ebnf};
  const std::size_t nul = input.find('\0');
  const std::string_view text = nul == input.npos ? std::string_view() : input.substr(nul + 1);
  GrammarLimits limits;
  limits.nodes = 20'000;
  limits.terms = 50'000;
  limits.configurations = 100'000;
  limits.work_per_step = 50'000;
  limits.compile_time = std::chrono::milliseconds(500);
  try {
    const auto grammar =
        std::make_shared<const Grammar>(GrammarSource{.kind = kKinds[data[0] % kKinds.size()],
                                                      .text = std::string(input.substr(0, nul)),
                                                      .choices = {}},
                                        vocabulary(), limits);
    Matcher matcher(grammar);
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
  return 0;
}
