#include "sluice/ops/linear/matmul.h"

#include "backend/cpu/linear/linear.h"

namespace sluice::backend::cpu {

using namespace linear;

template <>
void run(Context& context, const ops::Matmul& op) {
  Linear linear;
  linear.x = op.x;
  linear.w = Matrices(op.w);
  linear.out = op.out;
  run_linear(context, linear);
}

}  // namespace sluice::backend::cpu
