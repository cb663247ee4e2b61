// sum[token_idx[i]] += weights[i] * bucket_out[i]. If a token is repeated, its rows are added in bucket
// order, rounded to the sum's type at each step.
//
// A block computes one bucket row and a range of columns. The first row of a token adds all rows of that
// token; the others find an earlier row and exit, so no two blocks write one element. Bytes: bucket_out once,
// the rows of sum that change twice, and the indices once per block, from the cache.
#include "sluice/ops/routing/moe_scatter_add.h"

#include "backend/cuda/device/chunk.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::routing {

namespace {

constexpr int kThreads = 128;

struct ScatterCall {
  ChunkedRows<const void*> bucket_out;
  ChunkedRows<void*> sum;
  const int* token_idx;
  const float* weights;
  int bucket;
  long long tokens;
  long long width;
  unsigned column_blocks;
  Fault* fault;
};

template <class T, class Bucket>
__global__ void __launch_bounds__(kThreads) moe_scatter_add(ScatterCall call) {
  constexpr int V = kChunk<T>;
  const int row = to_int(blockIdx.x / call.column_blocks);
  const long long at = (blockIdx.x % call.column_blocks * kThreads + threadIdx.x) * V;
  wait_for_inputs();
  allow_successor();
  const int token = call.token_idx[row];
  if (token < 0 || token >= call.tokens) {
    if (threadIdx.x == 0) report(call.fault, FaultKind::token_index, token, call.tokens);
    return;
  }
  bool named_before = false;
  for (int b = threadIdx.x; b < row; b += kThreads) named_before |= call.token_idx[b] == token;
  if (__syncthreads_or(named_before)) return;

  const long long left = call.width - at;
  T* sum = call.sum.row<T>(token) + at;
  Chunk<T, V> total = {};
  if (left > 0) total = load_chunk<V>(static_cast<const T*>(sum), left, call.sum.aligned);
  const auto add_row = [&](int b) {
    if (left <= 0) return;
    float x[V];
    float y[V];
    widen(load_chunk<V>(call.bucket_out.row<Bucket>(b) + at, left, call.bucket_out.aligned), y);
    widen(total, x);
    const float weight = call.weights[b];
#pragma unroll
    for (int i = 0; i < V; ++i) x[i] += weight * y[i];
    total = narrow<T>(x);
  };
  add_row(row);
  // Windows of later rows; most contain no repetition.
  for (int first = row + 1; first < call.bucket; first += kThreads) {
    const int b = first + to_int(threadIdx.x);
    if (!__syncthreads_or(b < call.bucket && call.token_idx[b] == token)) continue;
    const int end = min(first + kThreads, call.bucket);
    for (int later = first; later < end; ++later)
      if (call.token_idx[later] == token) add_row(later);
  }
  if (left > 0) store_chunk(total, sum, left, call.sum.aligned);
}

}  // namespace

}  // namespace sluice::backend::cuda::routing

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::MoeScatterAdd& op) {
  using namespace routing;
  with_activations(op.sum.dtype, op.bucket_out.dtype, [&]<class T, class Bucket>() {
    constexpr int V = kChunk<T>;
    const long long width = op.sum.dim(1);
    const auto column_blocks = to_unsigned(divide_up<long long>(width, V * kThreads));
    const ScatterCall call{{op.bucket_out, V},
                           {op.sum, V},
                           static_cast<const int*>(op.token_idx.data),
                           static_cast<const float*>(op.weights.data),
                           to_int(op.bucket_out.dim(0)),
                           op.sum.dim(0),
                           width,
                           column_blocks,
                           context.fault()};
    const auto blocks = to_unsigned(op.bucket_out.dim(0)) * column_blocks;
    launch(context, moe_scatter_add<T, Bucket>, {dim3(blocks), dim3(kThreads)}, call);
  });
}

}  // namespace sluice::backend::cuda
