// The bytes of single tokens.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/engine.h"

namespace sluice {

// The bytes that an id contributes to decoded text, possibly part of a character; empty for an id without a
// token. Needs a tokenizer.
std::string token_bytes(const Engine& engine, std::int32_t id);

}  // namespace sluice
