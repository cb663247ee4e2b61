#include "state/state_pool.h"

#include "base/error.h"
#include "quant/rotation_signs.h"

namespace sluice::state {

StatePool::StatePool(ops::Backend& backend, const std::vector<LayerStateShape>& shapes, const Extent& extent,
                     const CacheFormat& format)
    : backend_(backend), extent_(extent), layers_(plan(shapes, extent, format)) {
  constexpr auto kSigns = quant::rotation_signs();
  void* signs = nullptr;
  if (format.packed()) {
    signs = buffers_.emplace_back(backend.allocate(kSigns.size())).data();
    backend.upload(signs, kSigns.data(), kSigns.size());
  }
  for (LayerState& layer : layers_) {
    for_each_tensor(layer, [&](ops::View& tensor, Layout) {
      tensor.data = buffers_.emplace_back(backend.allocate(bytes_of(tensor))).data();
    });
    std::visit(
        [&](auto& kind) {
          if constexpr (requires { kind.signs; }) kind.signs.data = signs;
        },
        layer);
  }
  for (std::int64_t slot = 0; slot < extent.slots; ++slot) reset(slot);
}

void StatePool::reset(std::int64_t slot) {
  std::vector<std::byte> zeros;
  for (const LayerState& layer : layers_)
    for_each_tensor(layer, [&](const ops::View& tensor, Layout layout) {
      if (layout != Layout::whole) return;
      const std::size_t bytes = bytes_of(tensor[slot]);
      if (zeros.size() < bytes) zeros.resize(bytes);
      backend_.upload(tensor[slot].data, zeros.data(), bytes);
    });
}

// Calls f(data, bytes) for every block of memory that a save holds, in a fixed order.
template <class F>
void StatePool::for_each_saved(std::int64_t slot, std::int64_t rows, bool with_caches, F&& f) const {
  if (rows < 0 || rows > capacity())
    fail(ErrorKind::internal, "{} rows of a state with capacity {}", rows, capacity());
  const auto add = [&](const ops::View& part) { f(part.data, bytes_of(part)); };
  for (const LayerState& layer : layers_)
    for_each_tensor(layer, [&](const ops::View& tensor, Layout layout) {
      if (layout != Layout::whole && !with_caches) return;
      const ops::View own = tensor[slot];
      if (layout == Layout::whole) return add(own);
      if (layout == Layout::rows) return add(own.rows(0, rows));
      for (std::int64_t head = 0; head < own.dim(0); ++head) add(own[head].rows(0, rows));
    });
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
