#include "state/layer_state.h"

#include "base/error.h"
#include "quant/rotation_signs.h"

namespace sluice::state {

namespace {

using ops::DType;
using ops::Shape;

// One tensor to be: absent where the shape is empty.
struct Tensor {
  Shape shape;
  DType type = DType::f32;
  std::size_t bytes() const {
    return shape.rank() == 0 ? 0 : static_cast<std::size_t>(shape.elements()) * size_bytes(type);
  }
};

struct Tensors {
  Tensor first;
  Tensor second;
  Tensor first_norms;
  Tensor second_norms;
  std::int64_t width = 0;  // of packed rows
};

void check_packed_width(std::int64_t width) {
  if (width < 32 || width > 1024 || (width & (width - 1)) != 0)
    fail(ErrorKind::unsupported,
         "packed caches need rows whose width is a power of two from 32 to 1024, this model's are {} wide; "
         "choose a cache of bf16 or f32",
         width);
}

Tensors tensors(const KvCacheShape& kv, std::int64_t slots, std::int64_t capacity,
                const CacheFormat& format) {
  if (!format.packed())
    return {{{slots, capacity, kv.kv_heads, kv.head_dim}, format.type},
            {{slots, capacity, kv.kv_heads, kv.value_dim}, format.type},
            {},
            {}};
  check_packed_width(kv.head_dim);
  check_packed_width(kv.value_dim);
  const Tensor norms{{slots, kv.kv_heads, capacity}, DType::f32};
  return {{{slots, kv.kv_heads, capacity, kv.head_dim * format.key_bits / 8}, DType::u8},
          {{slots, kv.kv_heads, capacity, kv.value_dim * format.value_bits / 8}, DType::u8},
          norms,
          norms,
          kv.head_dim};
}

Tensors tensors(const LatentCacheShape& latent, std::int64_t slots, std::int64_t capacity,
                const CacheFormat& format) {
  const Tensor rope{{slots, capacity, latent.rope}, format.packed() ? DType::bf16 : format.type};
  if (format.key_bits == 16) return {{{slots, capacity, latent.rank}, rope.type}, rope, {}, {}};
  check_packed_width(latent.rank);
  return {{{slots, capacity, latent.rank * format.key_bits / 8}, DType::u8},
          rope,
          {{slots, capacity}, DType::f32},
          {},
          latent.rank};
}

Tensors tensors(const DeltaStateShape& delta, std::int64_t slots, std::int64_t, const CacheFormat&) {
  return {{{slots, delta.value_heads, delta.value_dim, delta.key_dim}, DType::f32},
          {{slots, delta.conv_width - 1, delta.conv_channels}, DType::f32},
          {},
          {}};
}

Tensors tensors(const LayerStateShape& layer, std::int64_t slots, std::int64_t capacity,
                const CacheFormat& format) {
  return std::visit([&](const auto& shape) { return tensors(shape, slots, capacity, format); }, layer);
}

std::size_t bytes_of(const ops::View& view) {
  return static_cast<std::size_t>(view.elements()) * size_bytes(view.dtype);
}

}  // namespace

std::size_t StatePool::bytes(const std::vector<LayerStateShape>& layers, std::int64_t slots,
                             std::int64_t capacity, const CacheFormat& format) {
  std::size_t total = 0;
  for (const LayerStateShape& layer : layers) {
    const Tensors t = tensors(layer, slots, capacity, format);
    for (const Tensor& one : {t.first, t.second, t.first_norms, t.second_norms}) total += one.bytes();
  }
  return total;
}

StatePool::StatePool(ops::Backend& backend, const std::vector<LayerStateShape>& layers, std::int64_t slots,
                     std::int64_t capacity, const CacheFormat& format)
    : backend_(backend), slots_(slots), capacity_(capacity) {
  const auto make = [&](const Tensor& tensor) -> ops::View {
    if (tensor.shape.rank() == 0) return {};
    buffers_.push_back(backend.allocate(tensor.bytes()));
    return {buffers_.back().data(), tensor.type, tensor.shape};
  };
  constexpr auto kSigns = quant::rotation_signs();
  void* signs = nullptr;
  if (format.packed()) {
    signs = make({{static_cast<std::int64_t>(kSigns.size())}, DType::u8}).data;
    backend.upload(signs, kSigns.data(), kSigns.size());
  }
  for (const LayerStateShape& layer : layers) {
    const Tensors t = tensors(layer, slots, capacity, format);
    LayerState& state = layers_.emplace_back();
    state.first = make(t.first);
    state.second = make(t.second);
    state.first_norms = make(t.first_norms);
    state.second_norms = make(t.second_norms);
    state.first_bits = format.key_bits;
    state.second_bits = format.value_bits;
    if (t.width != 0) state.signs = ops::ConstView(signs, DType::u8, {t.width / 8});
    state.recurrent = std::holds_alternative<DeltaStateShape>(layer);
  }
  for (std::int64_t slot = 0; slot < slots; ++slot) reset(slot);
}

void StatePool::reset(std::int64_t slot) {
  std::vector<std::byte> zeros;
  for (const LayerState& layer : layers_) {
    if (!layer.recurrent) continue;
    for (const ops::View& part : {layer.first[slot], layer.second[slot]}) {
      const std::size_t bytes = bytes_of(part);
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
  const auto add = [&](const ops::View& part) { f(part.data, bytes_of(part)); };
  for (const LayerState& layer : layers_) {
    if (!layer.recurrent && !with_caches) continue;
    // The rows of packed keys and values lie behind one another a head.
    const bool by_head = layer.second_norms.present();
    for (const ops::View& pool : {layer.first, layer.second, layer.first_norms, layer.second_norms}) {
      if (!pool.present()) continue;
      const ops::View own = pool[slot];
      if (layer.recurrent)
        add(own);
      else if (!by_head)
        add(own.rows(0, rows));
      else
        for (std::int64_t head = 0; head < own.dim(0); ++head) add(own[head].rows(0, rows));
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
