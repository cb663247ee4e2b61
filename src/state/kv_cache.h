// Keys and values of all past tokens.
#pragma once

#include "state/cache_format.h"

namespace sluice::state {

struct KvCacheShape {
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;
};

// Unpacked.
struct KvCache {
  ops::View keys;    // [pages, rows, kv_heads, head_dim]
  ops::View values;  // [pages, rows, kv_heads, value_dim]

  template <class Self, class F>
  static void for_each_tensor(Self& self, F&& f) {
    f(self.keys, Layout::rows);
    f(self.values, Layout::rows);
  }
};

// Packed as codes.
struct PackedKvCache {
  ops::View key_codes;    // U8 [pages, kv_heads, rows, head_dim * key_bits / 8]
  ops::View value_codes;  // U8 [pages, kv_heads, rows, value_dim * value_bits / 8]
  ops::View key_norms;    // F32 [pages, kv_heads, rows]
  ops::View value_norms;  // F32 [pages, kv_heads, rows]
  ops::ConstView signs;   // U8 [head_dim / 8]: of the rotation
  std::int64_t key_bits = 16;
  std::int64_t value_bits = 16;

  template <class Self, class F>
  static void for_each_tensor(Self& self, F&& f) {
    f(self.key_codes, Layout::head_rows);
    f(self.value_codes, Layout::head_rows);
    f(self.key_norms, Layout::head_rows);
    f(self.value_norms, Layout::head_rows);
  }
};

// Shapes and types without memory.
KvCache plan_numbers(const KvCacheShape& shape, const Extent& extent, const CacheFormat& format);
PackedKvCache plan_packed(const KvCacheShape& shape, const Extent& extent, const CacheFormat& format);

}  // namespace sluice::state
