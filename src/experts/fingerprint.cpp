#include "experts/fingerprint.h"

#include <bit>
#include <cstring>

namespace sluice::experts {

namespace {

constexpr std::uint64_t kPrimes[] = {0x9e3779b185ebca87u, 0xc2b2ae3d27d4eb4fu, 0x165667b19e3779f9u,
                                     0x85ebca77c2b2ae63u, 0x27d4eb2f165667c5u};

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

std::uint64_t round(std::uint64_t lane, std::uint64_t word) {
  return std::rotl(lane + word * kPrimes[1], 31) * kPrimes[0];
}

}  // namespace

std::uint64_t fingerprint(std::span<const std::byte> bytes, std::uint64_t seed) {
  const std::byte* at = bytes.data();
  const std::byte* const end = at + bytes.size();
  std::uint64_t hash = seed + kPrimes[4];
  if (bytes.size() >= 32) {
    std::uint64_t lanes[4] = {seed + kPrimes[0] + kPrimes[1], seed + kPrimes[1], seed, seed - kPrimes[0]};
    for (; end - at >= 32; at += 32)
      for (std::size_t i = 0; i < 4; ++i) lanes[i] = round(lanes[i], load<std::uint64_t>(at + 8 * i));
    hash =
        std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) + std::rotl(lanes[3], 18);
    for (const std::uint64_t lane : lanes) hash = (hash ^ round(0, lane)) * kPrimes[0] + kPrimes[3];
  }
  hash += bytes.size();
  for (; end - at >= 8; at += 8)
    hash = std::rotl(hash ^ round(0, load<std::uint64_t>(at)), 27) * kPrimes[0] + kPrimes[3];
  for (; end - at >= 4; at += 4)
    hash = std::rotl(hash ^ (load<std::uint32_t>(at) * kPrimes[0]), 23) * kPrimes[1] + kPrimes[2];
  for (; at < end; ++at)
    hash = std::rotl(hash ^ (static_cast<std::uint64_t>(*at) * kPrimes[4]), 11) * kPrimes[0];
  hash = (hash ^ (hash >> 33)) * kPrimes[1];
  hash = (hash ^ (hash >> 29)) * kPrimes[2];
  return hash ^ (hash >> 32);
}

std::uint64_t fingerprint(const Expert& expert) {
  std::uint64_t hash = 0;
  for_each_tensor(expert, [&](const ops::ConstView& tensor) { hash = fingerprint(bytes_of(tensor), hash); });
  return hash;
}

}  // namespace sluice::experts
