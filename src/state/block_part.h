// Blocks of rows hold those of all layers in order. A node with some of the layers has its part of each
// block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace sluice::state {

struct BlockPart {
  std::size_t first = 0;  // offset in a block
  std::size_t size = 0;
  std::size_t block = 0;  // bytes of a complete block

  // This node's bytes in blocks of that many bytes in total.
  std::size_t bytes_in(std::size_t blocks) const { return block == 0 ? 0 : blocks / block * size; }

  void put(std::span<const std::byte> own, std::span<std::byte> blocks) const {
    for (; !own.empty(); own = own.subspan(size), blocks = blocks.subspan(block))
      std::copy_n(own.begin(), size, blocks.subspan(first).begin());
  }
  std::vector<std::byte> take(std::span<const std::byte> blocks) const {
    std::vector<std::byte> own;
    own.reserve(bytes_in(blocks.size()));
    for (; size > 0 && !blocks.empty(); blocks = blocks.subspan(block)) {
      const auto part = blocks.subspan(first, size);
      own.insert(own.end(), part.begin(), part.end());
    }
    return own;
  }
};

}  // namespace sluice::state
