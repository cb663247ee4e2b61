#include "state/kv_cache.h"

namespace sluice::state {

using ops::DType;

KvCache plan_numbers(const KvCacheShape& shape, const Extent& extent, const CacheFormat& format) {
  return {{nullptr, format.type, {extent.slots, extent.capacity, shape.kv_heads, shape.head_dim}},
          {nullptr, format.type, {extent.slots, extent.capacity, shape.kv_heads, shape.value_dim}}};
}

PackedKvCache plan_packed(const KvCacheShape& shape, const Extent& extent, const CacheFormat& format) {
  check_packed_width(shape.head_dim);
  check_packed_width(shape.value_dim);
  const auto codes = [&](std::int64_t width, std::int64_t bits) -> ops::View {
    return {nullptr, DType::u8, {extent.slots, shape.kv_heads, extent.capacity, width * bits / 8}};
  };
  const ops::View norms(nullptr, DType::f32, {extent.slots, shape.kv_heads, extent.capacity});
  return {codes(shape.head_dim, format.key_bits),
          codes(shape.value_dim, format.value_bits),
          norms,
          norms,
          {nullptr, DType::u8, {shape.head_dim / 8}},
          format.key_bits,
          format.value_bits};
}

}  // namespace sluice::state
