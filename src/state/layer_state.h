// The state of one layer for its sequences, of any kind.
#pragma once

#include <type_traits>
#include <variant>
#include <vector>

#include "base/integer_cast.h"
#include "state/delta_state.h"
#include "state/kv_cache.h"
#include "state/latent_cache.h"

namespace sluice::state {

using LayerStateShape = std::variant<KvCacheShape, LatentCacheShape, DeltaStateShape>;
// The tensors of a layer, with the slots of the pool as their first dimension.
using LayerState = std::variant<KvCache, PackedKvCache, LatentCache, PackedLatentCache, DeltaState>;

// Shapes and types without memory, for planning a pass.
LayerState plan(const LayerStateShape& shape, const Extent& extent, const CacheFormat& format);
std::vector<LayerState> plan(const std::vector<LayerStateShape>& shapes, const Extent& extent,
                             const CacheFormat& format);

// Calls f(tensor, layout) for each tensor with state of a sequence.
template <class State, class F>
requires std::is_same_v<std::remove_const_t<State>, LayerState>
void for_each_tensor(State& state, F&& f) {
  std::visit([&](auto& kind) { std::remove_cvref_t<decltype(kind)>::for_each_tensor(kind, f); }, state);
}

inline std::size_t bytes_of(const ops::View& view) {
  return to_size(view.elements()) * size_bytes(view.dtype);
}

// Bytes of layers with these shapes: per page of their caches, and per slot, independent of its
// length.
struct StateBytes {
  std::size_t page = 0;
  std::size_t slot = 0;
  std::int64_t tensors = 0;
};
StateBytes bytes_of(const std::vector<LayerStateShape>& shapes, const CacheFormat& format);

}  // namespace sluice::state
