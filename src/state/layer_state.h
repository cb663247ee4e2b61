// What a layer remembers of a sequence, and how large that is.
#pragma once

#include <variant>
#include <vector>

#include "sluice/ops/backend.h"

namespace sluice::state {

// Keys and values of every past token.
struct KvCacheShape {
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;
};
// The compressed keys and values of latent attention.
struct LatentCacheShape {
  std::int64_t rank = 0;
  std::int64_t rope = 0;
};
// The matrix state of the delta rule and the last inputs of its convolution: a fixed size, whatever the
// length.
struct DeltaStateShape {
  std::int64_t value_heads = 0;
  std::int64_t value_dim = 0;
  std::int64_t key_dim = 0;
  std::int64_t conv_channels = 0;
  std::int64_t conv_width = 0;
};
using LayerStateShape = std::variant<KvCacheShape, LatentCacheShape, DeltaStateShape>;

// Two tensors a layer: k/v caches, latent/rope caches, or delta/conv states; pooled over slots in front.
struct LayerState {
  ops::View first;
  ops::View second;
  bool recurrent = false;
};

// The states of all layers for a number of sequences ("slots"), each up to `capacity` tokens.
class StatePool {
 public:
  StatePool(ops::Backend& backend, const std::vector<LayerStateShape>& layers, std::int64_t slots,
            std::int64_t capacity, ops::DType cache_type);

  // Known before anything is allocated.
  static std::size_t bytes(const std::vector<LayerStateShape>& layers, std::int64_t slots,
                           std::int64_t capacity, ops::DType cache_type);

  std::int64_t slots() const { return slots_; }
  std::int64_t capacity() const { return capacity_; }
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
  std::int64_t slots_;
  std::int64_t capacity_;
  std::vector<LayerState> layers_;
  std::vector<ops::Buffer> buffers_;
};

}  // namespace sluice::state
