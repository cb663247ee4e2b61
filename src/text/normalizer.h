// Unicode normalisation of the text between added tokens.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace sluice::text {

enum class Normalizer { none, nfc };

// Reads the `normalizer` of a tokenizer.json: null, NFC, or a Sequence of these; others are rejected by name.
Normalizer parse_normalizer(const Json& json);

// Canonical composition of valid UTF-8. Text that is already composed is copied run by run.
std::string nfc(std::string_view text);

}  // namespace sluice::text
