// Checkpoints with random weights of a known model's shape.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

namespace sluice {

// Writes an MLX checkpoint folder; it appears complete or not at all. Returns the bytes of its tensors;
// `progress` receives bytes done and in all. With `zipf` above 0, routers prefer some experts, whose shares
// follow Zipf's law with that exponent.
std::uint64_t write_random_model(
    std::string_view geometry, int bits, const std::filesystem::path& folder,
    const std::function<void(std::uint64_t done, std::uint64_t total)>& progress = {}, double zipf = 0);

// The same model as one GGUF file of blocks of 3, 4 or 6 bits (Q3_K, Q4_K, Q6_K), to measure other programs
// with; only for Qwen3.5 with experts.
std::uint64_t write_random_gguf(
    std::string_view geometry, int bits, const std::filesystem::path& file,
    const std::function<void(std::uint64_t done, std::uint64_t total)>& progress = {}, double zipf = 0);

}  // namespace sluice
