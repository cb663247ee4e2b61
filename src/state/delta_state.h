// The matrix state of the delta rule and the last inputs of its convolution: a fixed size, whatever the
// length.
#pragma once

#include "state/cache_format.h"

namespace sluice::state {

struct DeltaStateShape {
  std::int64_t value_heads = 0;
  std::int64_t value_dim = 0;
  std::int64_t key_dim = 0;
  std::int64_t conv_channels = 0;
  std::int64_t conv_width = 0;
};

struct DeltaState {
  ops::View delta;  // F32 [slots, value_heads, value_dim, key_dim]
  ops::View conv;   // F32 [slots, conv_width - 1, conv_channels]

  template <class Self, class F>
  static void for_each_tensor(Self& self, F&& f) {
    f(self.delta, Layout::whole);
    f(self.conv, Layout::whole);
  }
};

// Shapes and types without memory.
inline DeltaState plan_state(const DeltaStateShape& shape, std::int64_t slots) {
  return {{nullptr, ops::DType::f32, {slots, shape.value_heads, shape.value_dim, shape.key_dim}},
          {nullptr, ops::DType::f32, {slots, shape.conv_width - 1, shape.conv_channels}}};
}

}  // namespace sluice::state
