// An untrusted JSON schema, and a text to match.
#include "follow_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sluice::fuzz::follow_text(sluice::GrammarSource::Kind::json_schema, data, size);
  return 0;
}
