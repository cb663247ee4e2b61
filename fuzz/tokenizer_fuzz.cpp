// Bytes up to the first NUL are a tokenizer.json, the rest is a text to encode with it and decode again.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "text/detokenizer.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice::text;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t nul = input.find('\0');
  const std::string_view text = nul == input.npos ? std::string_view("text") : input.substr(nul + 1);
  try {
    const Tokenizer tokenizer = Tokenizer::parse(input.substr(0, nul));
    const std::vector<std::int32_t> ids = tokenizer.encode(text, {.add_special_tokens = true});
    tokenizer.encode(text, {.special_as_text = true});
    const std::string whole = tokenizer.decode(ids, false);
    Detokenizer stream(tokenizer, false);
    std::string parts;
    for (const std::int32_t id : ids) parts += stream.push(id);
    if (parts + stream.finish() != whole) __builtin_trap();
  } catch (const sluice::Error&) {
  }
  return 0;
}
