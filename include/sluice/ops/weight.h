// A weight matrix as checkpoints store it: dense, or packed in one of MLX's quantised formats.
#pragma once

#include <span>

#include "sluice/ops/view.h"

namespace sluice::ops {

enum class QuantMode : std::uint8_t { affine, mxfp4, mxfp8, nvfp4 };
std::string_view name(QuantMode mode);

// Dense: `values` F32/BF16/F16 [..,N,K] alone. Quantised in planes: `values` U32 [..,N,K*bits/32], `scales`
// and (affine only) `biases` [..,N,K/group_size]; value = q*scale + bias. Quantised in blocks that interleave
// codes and scales: `values` U8 [..,N,bytes of K/block blocks] alone. The data may start at any byte address,
// as in a mapped file.
struct Weight {
  ConstView values;
  ConstView scales;
  ConstView biases;
  QuantMode mode = QuantMode::affine;
  int bits = 4;
  int group_size = 64;

  constexpr bool present() const { return values.present(); }
  constexpr bool quantized() const { return values.dtype == DType::u32 || values.dtype == DType::u8; }
  Shape shape() const;                      // the logical [..,N,K]
  Weight operator[](std::int64_t i) const;  // matrix i of a stack [E,N,K]
  std::size_t bytes() const;                // bytes read when every value is used once
};

// Expert matrices, all of one shape and format: one stack [E,N,K], or one Weight [N,K] per expert, anywhere
// in memory.
struct ExpertWeights {
  Weight stack;
  std::span<const Weight> separate;

  constexpr bool present() const { return stack.present() || !separate.empty(); }
  Shape shape() const;  // the logical [E,N,K]
  Weight operator[](std::int64_t expert) const;
};

}  // namespace sluice::ops
