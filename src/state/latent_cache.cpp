#include "state/latent_cache.h"

namespace sluice::state {

using ops::DType;

LatentCache plan_numbers(const LatentCacheShape& shape, const Extent& extent, const CacheFormat& format) {
  const DType type = format.packed() ? DType::bf16 : format.type;
  return {{nullptr, type, {extent.slots, extent.capacity, shape.rank}},
          {nullptr, type, {extent.slots, extent.capacity, shape.rope}}};
}

PackedLatentCache plan_packed(const LatentCacheShape& shape, const Extent& extent,
                              const CacheFormat& format) {
  check_packed_width(shape.rank);
  return {{nullptr, DType::u8, {extent.slots, extent.capacity, shape.rank * format.key_bits / 8}},
          {nullptr, DType::f32, {extent.slots, extent.capacity}},
          {nullptr, DType::bf16, {extent.slots, extent.capacity, shape.rope}},
          {nullptr, DType::u8, {shape.rank / 8}},
          format.key_bits};
}

}  // namespace sluice::state
