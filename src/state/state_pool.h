// The states of all layers for a number of sequences ("slots"), each up to `capacity` tokens.
#pragma once

#include <span>

#include "sluice/ops/backend.h"
#include "state/layer_state.h"

namespace sluice::state {

class StatePool {
 public:
  StatePool(ops::Backend& backend, const std::vector<LayerStateShape>& shapes, const Extent& extent,
            const CacheFormat& format);

  std::int64_t slots() const { return extent_.slots; }
  std::int64_t capacity() const { return extent_.capacity; }
  const std::vector<LayerState>& layers() const { return layers_; }
  // An empty past: recurrent states become zero; caches are simply not looked at.
  void reset(std::int64_t slot);
  // Copies of a slot's recurrent states, and of the first `rows` rows of its caches if asked for.
  std::vector<std::byte> save(std::int64_t slot, std::int64_t rows, bool with_caches);
  void load(std::int64_t slot, std::int64_t rows, bool with_caches, std::span<const std::byte> saved);
  std::size_t saved_bytes(std::int64_t rows, bool with_caches) const;

 private:
  template <class F>
  void for_each_saved(std::int64_t slot, std::int64_t rows, bool with_caches, F&& f) const;

  ops::Backend& backend_;
  Extent extent_;
  std::vector<LayerState> layers_;
  std::vector<ops::Buffer> buffers_;
};

}  // namespace sluice::state
