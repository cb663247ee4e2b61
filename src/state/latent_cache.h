// The compressed keys and values of latent attention, of every past token.
#pragma once

#include "state/cache_format.h"

namespace sluice::state {

struct LatentCacheShape {
  std::int64_t rank = 0;
  std::int64_t rope = 0;
};

// Unpacked.
struct LatentCache {
  ops::View latents;    // [pages, rows, rank]
  ops::View rope_keys;  // [pages, rows, rope]

  template <class Self, class F>
  static void for_each_tensor(Self& self, F&& f) {
    f(self.latents, Layout::rows);
    f(self.rope_keys, Layout::rows);
  }
};

// Latents as codes; rotary keys stay numbers.
struct PackedLatentCache {
  ops::View codes;       // U8 [pages, rows, rank * bits / 8]
  ops::View norms;       // F32 [pages, rows]
  ops::View rope_keys;   // BF16 [pages, rows, rope]
  ops::ConstView signs;  // U8 [rank / 8]: of the rotation
  std::int64_t bits = 16;

  template <class Self, class F>
  static void for_each_tensor(Self& self, F&& f) {
    f(self.codes, Layout::rows);
    f(self.norms, Layout::rows);
    f(self.rope_keys, Layout::rows);
  }
};

// Shapes and types without memory.
LatentCache plan_numbers(const LatentCacheShape& shape, const Extent& extent, const CacheFormat& format);
PackedLatentCache plan_packed(const LatentCacheShape& shape, const Extent& extent, const CacheFormat& format);

}  // namespace sluice::state
