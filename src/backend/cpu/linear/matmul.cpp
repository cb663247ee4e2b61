#include "sluice/ops/linear/matmul.h"

#include "backend/cpu/linear/linear.h"

namespace sluice::backend::cpu {

linear::Linear linear::linear_of(const ops::Matmul& op) {
  Linear linear;
  linear.x = op.x;
  linear.w = Matrices(op.w);
  linear.out = op.out;
  return linear;
}

template <>
void run(Context& context, const ops::Matmul& op) {
  linear::run_linear(context, linear::linear_of(op));
}

}  // namespace sluice::backend::cpu
