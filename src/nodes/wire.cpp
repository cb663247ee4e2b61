#include "nodes/wire.h"

namespace sluice::nodes {

void Writer::append(const void* from, std::size_t bytes) {
  const std::size_t at = message_.size();
  message_.resize(at + bytes);
  if (bytes > 0) std::memcpy(message_.data() + at, from, bytes);
}

}  // namespace sluice::nodes
