#include "state/layer_state.h"

namespace sluice::state {

namespace {

LayerState plan_kind(const KvCacheShape& shape, const Extent& extent, const CacheFormat& format) {
  if (format.packed()) return plan_packed(shape, extent.of_caches(), format);
  return plan_numbers(shape, extent.of_caches(), format);
}

LayerState plan_kind(const LatentCacheShape& shape, const Extent& extent, const CacheFormat& format) {
  if (format.key_bits != 16) return plan_packed(shape, extent.of_caches(), format);
  return plan_numbers(shape, extent.of_caches(), format);
}

LayerState plan_kind(const DeltaStateShape& shape, const Extent& extent, const CacheFormat&) {
  return plan_state(shape, extent.slots + extent.snapshots);
}

}  // namespace

LayerState plan(const LayerStateShape& shape, const Extent& extent, const CacheFormat& format) {
  return std::visit([&](const auto& kind) { return plan_kind(kind, extent, format); }, shape);
}

std::vector<LayerState> plan(const std::vector<LayerStateShape>& shapes, const Extent& extent,
                             const CacheFormat& format) {
  std::vector<LayerState> states;
  states.reserve(shapes.size());
  for (const LayerStateShape& shape : shapes) states.push_back(plan(shape, extent, format));
  return states;
}

StateBytes bytes_of(const std::vector<LayerStateShape>& shapes, const CacheFormat& format) {
  StateBytes bytes;
  for (const LayerState& state : plan(shapes, {}, format))
    for_each_tensor(state, [&](const ops::View& tensor, Layout layout) {
      (layout == Layout::whole ? bytes.slot : bytes.page) += bytes_of(tensor);
      ++bytes.tensors;
    });
  return bytes;
}

}  // namespace sluice::state
