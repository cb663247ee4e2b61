#include "state/layer_state.h"

#include <cstring>

#include "base/error.h"

namespace sluice::state {

namespace {

using ops::DType;
using ops::Shape;

struct Tensors {
  Shape first;
  Shape second;
  DType type;
  bool recurrent;
};

Tensors tensors(const LayerStateShape& layer, std::int64_t slots, std::int64_t capacity, DType cache_type) {
  if (const auto* kv = std::get_if<KvCacheShape>(&layer))
    return {{slots, capacity, kv->kv_heads, kv->head_dim},
            {slots, capacity, kv->kv_heads, kv->value_dim},
            cache_type,
            false};
  if (const auto* latent = std::get_if<LatentCacheShape>(&layer))
    return {{slots, capacity, latent->rank}, {slots, capacity, latent->rope}, cache_type, false};
  const auto& delta = std::get<DeltaStateShape>(layer);
  return {{slots, delta.value_heads, delta.value_dim, delta.key_dim},
          {slots, delta.conv_width - 1, delta.conv_channels},
          DType::f32,
          true};
}

std::size_t bytes_of(const Shape& shape, DType type) {
  return static_cast<std::size_t>(shape.elements()) * size_bytes(type);
}

}  // namespace

std::size_t StatePool::bytes(const std::vector<LayerStateShape>& layers, std::int64_t slots,
                             std::int64_t capacity, DType cache_type) {
  std::size_t total = 0;
  for (const LayerStateShape& layer : layers) {
    const Tensors t = tensors(layer, slots, capacity, cache_type);
    total += bytes_of(t.first, t.type) + bytes_of(t.second, t.type);
  }
  return total;
}

StatePool::StatePool(ops::Backend& backend, const std::vector<LayerStateShape>& layers, std::int64_t slots,
                     std::int64_t capacity, DType cache_type)
    : backend_(backend), slots_(slots), capacity_(capacity) {
  for (const LayerStateShape& layer : layers) {
    const Tensors t = tensors(layer, slots, capacity, cache_type);
    const auto make = [&](const Shape& shape) {
      buffers_.push_back(backend.allocate(bytes_of(shape, t.type)));
      return ops::View(buffers_.back().data(), t.type, shape);
    };
    const ops::View first = make(t.first);
    layers_.push_back({first, make(t.second), t.recurrent});
  }
  for (std::int64_t slot = 0; slot < slots; ++slot) reset(slot);
}

void StatePool::reset(std::int64_t slot) {
  std::vector<std::byte> zeros;
  for (const LayerState& layer : layers_) {
    if (!layer.recurrent) continue;
    for (const ops::View& part : {layer.first[slot], layer.second[slot]}) {
      const std::size_t bytes = bytes_of(part.shape, part.dtype);
      if (zeros.size() < bytes) zeros.resize(bytes);
      backend_.upload(part.data, zeros.data(), bytes);
    }
  }
}

// Calls f(data, bytes) for every block of memory that a save holds, in a fixed order.
template <class F>
void StatePool::for_each_saved(std::int64_t slot, std::int64_t rows, bool with_caches, F&& f) const {
  if (rows < 0 || rows > capacity_)
    fail(ErrorKind::internal, "{} rows of a state with capacity {}", rows, capacity_);
  for (const LayerState& layer : layers_) {
    if (!layer.recurrent && !with_caches) continue;
    for (const ops::View& pool : {layer.first, layer.second}) {
      const ops::View part = layer.recurrent ? pool[slot] : pool[slot].rows(0, rows);
      f(part.data, bytes_of(part.shape, part.dtype));
    }
  }
}

std::size_t StatePool::saved_bytes(std::int64_t rows, bool with_caches) const {
  std::size_t total = 0;
  for_each_saved(0, rows, with_caches, [&](void*, std::size_t bytes) { total += bytes; });
  return total;
}

std::vector<std::byte> StatePool::save(std::int64_t slot, std::int64_t rows, bool with_caches) {
  std::vector<std::byte> saved(saved_bytes(rows, with_caches));
  std::size_t at = 0;
  for_each_saved(slot, rows, with_caches, [&](void* data, std::size_t bytes) {
    backend_.download(saved.data() + at, data, bytes);
    at += bytes;
  });
  return saved;
}

void StatePool::load(std::int64_t slot, std::int64_t rows, bool with_caches,
                     std::span<const std::byte> saved) {
  if (saved.size() != saved_bytes(rows, with_caches))
    fail(ErrorKind::input, "a snapshot of {} bytes does not fit this model, which needs {}", saved.size(),
         saved_bytes(rows, with_caches));
  std::size_t at = 0;
  for_each_saved(slot, rows, with_caches, [&](void* data, std::size_t bytes) {
    backend_.upload(data, saved.data() + at, bytes);
    at += bytes;
  });
}

}  // namespace sluice::state
