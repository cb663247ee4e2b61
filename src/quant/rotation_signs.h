// The signs of the rotation of every packed cache.
#pragma once

#include <array>
#include <cstdint>

namespace sluice::quant {

// Bit i of byte j belongs to coordinate 8j+i, 1 means -1; a rotation of width D takes the first D/8 bytes.
// Part of the format of packed caches: the outputs of SplitMix64 from state 1737, little-endian. With that
// state, the signs spread one Walsh function over the coordinates like a random direction at every width:
// vectors with such a component have the error of random ones within 0.7%.
constexpr std::array<std::uint8_t, 128> rotation_signs() {
  std::array<std::uint8_t, 128> signs{};
  std::uint64_t state = 1737;
  for (std::size_t i = 0; i < signs.size(); i += 8) {
    state += 0x9e3779b97f4a7c15;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    for (std::size_t b = 0; b < 8; ++b) signs[i + b] = static_cast<std::uint8_t>(z >> 8 * b);
  }
  return signs;
}

}  // namespace sluice::quant
