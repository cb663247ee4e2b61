// Memory of one worker for products of words (word_products-inl.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::backend::cpu::attention::packed {

// Rows whose levels are in memory at a time, and whose weights are rounded together.
constexpr std::size_t kBlockRows = 16;

struct WordSpace {
  static std::size_t bytes(std::size_t queries, std::size_t width) {
    return (queries + kBlockRows) * width * sizeof(std::int16_t) +
           queries * (kBlockRows / 2 * sizeof(std::int32_t) + 2 * sizeof(float)) + 64;
  }
  WordSpace() = default;
  WordSpace(std::size_t queries, std::size_t width, std::byte* at)
      : width(width),
        levels(reinterpret_cast<std::int16_t*>(at)),
        queries(levels + kBlockRows * width),
        weights(reinterpret_cast<std::int32_t*>(this->queries + queries * width)),
        query_scales(reinterpret_cast<float*>(weights + queries * kBlockRows / 2)),
        weight_scales(query_scales + queries) {}

  std::size_t width = 0;
  std::int16_t* levels = nullptr;   // [row][coordinate], or [pair of rows][coordinate][row]
  std::int16_t* queries = nullptr;  // [query][coordinate]
  std::int32_t* weights = nullptr;  // [pair of rows][query], two words each
  float* query_scales = nullptr;
  float* weight_scales = nullptr;
};

}  // namespace sluice::backend::cpu::attention::packed
