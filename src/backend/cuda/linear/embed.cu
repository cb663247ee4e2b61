// out[t] = table[ids[t]], dequantised in float: one rounding of code * scale + bias.
//
// One block per token, eight values per thread. Bytes: a row of the table and of out, once per token. An id
// outside the table is reported and its row is not written.
#include "sluice/ops/linear/embed.h"

#include "backend/cuda/linear/weight_value.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear {

namespace {

struct EmbedCall {
  Matrices table;
  const int* ids;
  void* out;
  long long out_row;
  long long rows;
  long long width;
};

template <class T>
__global__ void embed_rows(EmbedCall call, Fault* fault) {
  wait_for_inputs();
  allow_successor();
  const long long id = call.ids[blockIdx.x];
  if (id < 0 || id >= call.rows) {
    if (threadIdx.x == 0) report(fault, FaultKind::token_id, id, call.rows);
    return;
  }
  T* out = static_cast<T*>(call.out) + blockIdx.x * call.out_row;
  for (long long eighth = threadIdx.x; 8 * eighth < call.width; eighth += blockDim.x) {
    float values[8];
    eight_values(call.table, call.table.first, id, eighth, call.width, values);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (8 * eighth + i < call.width) out[8 * eighth + i] = from_float<T>(values[i]);
  }
}

}  // namespace

}  // namespace sluice::backend::cuda::linear

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::Embed& op) {
  using namespace linear;
  const EmbedCall call{matrices_of(op.table), static_cast<const int*>(op.ids.data),
                       op.out.data,           op.out.strides[0],
                       op.table.shape()[0],   op.out.dim(1)};
  const Grid grid{dim3(to_unsigned(op.ids.dim(0))), dim3(256)};
  with_activation(op.out.dtype,
                  [&]<class T>() { launch(context, embed_rows<T>, grid, call, context.fault()); });
}

}  // namespace sluice::backend::cuda
