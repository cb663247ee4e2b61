// What single tokens stand for.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/engine.h"

namespace sluice {

// Of the id in decoded text: any bytes, also a part of a character; empty for an id without a token. Needs a
// tokenizer.
std::string token_bytes(const Engine& engine, std::int32_t id);

}  // namespace sluice
