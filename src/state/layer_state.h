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

// How caches hold their rows: as numbers, or packed, as codes of so many bits and a norm each. A latent row
// is key and value at once and takes the bits of keys.
struct CacheFormat {
  ops::DType type = ops::DType::f32;  // of numbers
  std::int64_t key_bits = 16;         // 16: numbers; BF16 beside packed values
  std::int64_t value_bits = 16;
  bool packed() const { return key_bits != 16 || value_bits != 16; }
};

// The tensors of a layer, pooled over slots in front.
struct LayerState {
  ops::View first;         // k cache, latents, or delta states; codes where packed
  ops::View second;        // v cache, rotary keys, or inputs of the convolution; codes of values where packed
  ops::View first_norms;   // of packed rows, else absent
  ops::View second_norms;  // the same; a latent's row has only the first
  ops::ConstView signs;    // of the rotation of packed rows
  std::int64_t first_bits = 16;
  std::int64_t second_bits = 16;
  bool recurrent = false;
  bool packed() const { return first_norms.present(); }
};

// The states of all layers for a number of sequences ("slots"), each up to `capacity` tokens.
class StatePool {
 public:
  StatePool(ops::Backend& backend, const std::vector<LayerStateShape>& layers, std::int64_t slots,
            std::int64_t capacity, const CacheFormat& format);

  // Known before anything is allocated.
  static std::size_t bytes(const std::vector<LayerStateShape>& layers, std::int64_t slots,
                           std::int64_t capacity, const CacheFormat& format);

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
