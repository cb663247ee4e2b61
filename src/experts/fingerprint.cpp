#include "experts/fingerprint.h"

#define XXH_INLINE_ALL  // the header is the library
#include <xxhash.h>

namespace sluice::experts {

std::uint64_t fingerprint(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::uint64_t fingerprint(const Expert& expert) {
  std::uint64_t hash = 0;
  for_each_tensor(expert, [&](const ops::ConstView& tensor) { hash = fingerprint(bytes_of(tensor), hash); });
  return hash;
}

}  // namespace sluice::experts
