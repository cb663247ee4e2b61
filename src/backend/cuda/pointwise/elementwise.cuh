// out = f(a, b) over equal shapes with strided outer dimensions; out may share an input's memory.
//
// A thread computes one 16-byte chunk of out; blocks cover the chunks of all rows in row-major order, and
// contiguous tensors are one long row. Bytes: a, b and out once.
#pragma once

#include "backend/cuda/device/chunk.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::pointwise {

struct ElementwiseCall {
  ChunkedRows<const void*> a;
  ChunkedRows<const void*> b;
  ChunkedRows<void*> out;
  long long width;
  long long row_chunks;
};

template <class F, class A, class B>
__global__ void __launch_bounds__(256) elementwise(ElementwiseCall call) {
  constexpr int V = kChunk<A>;
  const long long chunk = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long row = chunk / call.row_chunks;
  const long long at = (chunk - row * call.row_chunks) * V;
  wait_for_inputs();
  allow_successor();
  if (row >= call.out.offsets.count) return;
  const long long left = call.width - at;
  const Chunk<A, V> a = load_chunk<V>(call.a.row<A>(row) + at, left, call.a.aligned);
  const Chunk<B, V> b = load_chunk<V>(call.b.row<B>(row) + at, left, call.b.aligned);
  float x[V];
  float y[V];
  widen(a, x);
  widen(b, y);
#pragma unroll
  for (int i = 0; i < V; ++i) x[i] = F{}(x[i], y[i]);
  store_chunk<V>(narrow<A>(x), call.out.row<A>(row) + at, left, call.out.aligned);
}

template <class F>
void run_elementwise(Context& context, ops::ConstView a, ops::ConstView b, ops::View out) {
  if (a.contiguous() && b.contiguous() && out.contiguous()) {
    const ops::Shape flat{out.elements()};
    a = a.reshaped(flat);
    b = b.reshaped(flat);
    out = out.reshaped(flat);
  }
  with_activations(a.dtype, b.dtype, [&]<class A, class B>() {
    constexpr int V = kChunk<A>;
    const long long width = out.shape.back();
    const ElementwiseCall call{{a, V}, {b, V}, {out, V}, width, divide_up<long long>(width, V)};
    const auto blocks = divide_up<long long>(call.row_chunks * call.out.offsets.count, 256);
    launch(context, elementwise<F, A, B>, {dim3(to_unsigned(blocks)), dim3(256)}, call);
  });
}

}  // namespace sluice::backend::cuda::pointwise
