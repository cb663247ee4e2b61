// The engine of all ops that multiply by weights.
#pragma once

#include "backend/cpu/linear/weight_matrix.h"
#include "backend/cpu/runtime/context.h"
#include "sluice/ops/ops.h"

namespace sluice::backend::cpu::linear {

// out[o] = x[o / x_share] wT, or silu of that times x[o / x_share] upT, where o numbers the rows of `out`
// over all its leading dimensions. Row o uses matrix experts[o], or matrix o mod count without experts.
struct Linear {
  ops::ConstView x;
  std::int64_t x_share = 1;
  Matrices w;
  Matrices up;  // of the same shape as w; count 0 if absent
  ops::ConstView experts;
  ops::View out;
};

void run_linear(Context& context, const Linear& op);
// Products that do not depend on each other; `all` may be reordered.
void run_linears(Context& context, std::span<Linear> all);

constexpr std::size_t kMostTogether = 4;

// Converts an op to a product.
Linear linear_of(const ops::Matmul& op);
Linear linear_of(const ops::ExpertMatmul& op);
Linear linear_of(const ops::GateUpSwiglu& op);
Linear linear_of(const ops::ExpertGateUpSwiglu& op);

}  // namespace sluice::backend::cpu::linear
