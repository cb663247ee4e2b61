// Writes a model's raw output to a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

#include "sluice/engine.h"

namespace sluice {

// Writes F32 `logits` [T,vocab] of the tokens and, if greedy > 0, I32 `greedy` [greedy]: the ids then
// chosen one step at a time. `progress` receives tokens done and in all; if it throws, no file is
// left.
void write_logits_file(Engine& engine, std::span<const std::int32_t> tokens, std::int64_t greedy,
                       const std::filesystem::path& out,
                       const std::function<void(std::uint64_t done, std::uint64_t total)>& progress = {});

}  // namespace sluice
