// x = x * rsqrt(sum(x^2) + eps) * scale, for each head of q and of k, in place (norm.cuh). One launch: the
// first blocks compute q, the others k. Bytes: q and k twice.
#include "sluice/ops/pointwise/qk_l2_norm.h"

#include "backend/cuda/pointwise/norm.cuh"

namespace sluice::backend::cuda::pointwise {

namespace {

template <class T, int V>
struct L2Norm {
  static constexpr int kV = V;
  using Raw = Chunk<T, kV>;

  ChunkedRows<void*> x;
  NormWeight weight = {};

  struct Row {
    T* x;
    bool aligned;

    __device__ Raw load(long long at, long long left) const {
      return load_chunk<kV>(static_cast<const T*>(x) + at, left, aligned);
    }
    __device__ void values(const Raw& raw, long long, long long, float (&v)[kV]) const { widen(raw, v); }
    __device__ Raw again(long long at, long long left) const { return load(at, left); }
    __device__ void widen_again(const Raw& raw, float (&v)[kV]) const { widen(raw, v); }
    __device__ void write(const Raw&, long long at, long long left, const float (&v)[kV]) const {
      store_chunk(narrow<T>(v), x + at, left, aligned);
    }
  };
  __device__ Row row(long long i) const { return {x.template row<T>(i), x.aligned}; }
};

template <int kHeld, class Q, class K, int V>
__global__ void __launch_bounds__(kNormThreads)
    qk_l2_norm(const __grid_constant__ L2Norm<Q, V> q, const __grid_constant__ L2Norm<K, V> k,
               NormShape q_shape, NormShape k_shape, unsigned q_blocks) {
  if (blockIdx.x < q_blocks)
    norm_rows<kHeld>(q, q_shape, blockIdx.x, q_blocks);
  else
    norm_rows<kHeld>(k, k_shape, blockIdx.x - q_blocks, gridDim.x - q_blocks);
}

}  // namespace

}  // namespace sluice::backend::cuda::pointwise

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::QkL2Norm& op) {
  using namespace pointwise;
  with_activations(op.q.dtype, op.k.dtype, [&]<class Q, class K>() {
    constexpr int V = kChunk<Q> < kChunk<K> ? kChunk<Q> : kChunk<K>;
    const L2Norm<Q, V> q{{op.q, V}};
    const L2Norm<K, V> k{{op.k, V}};
    const auto width = op.q.dim(2);
    const NormShape q_shape{q.x.offsets.count, width, 1, op.eps, op.q_scale};
    const NormShape k_shape{k.x.offsets.count, width, 1, op.eps, op.k_scale};
    const dim3 threads = norm_threads(width, V);
    const unsigned q_blocks = norm_blocks(context, q_shape.rows, threads);
    const unsigned k_blocks = norm_blocks(context, k_shape.rows, threads);
    const Grid grid{dim3(q_blocks + k_blocks), threads};
    if (one_chunk(width, V, threads))
      launch(context, qk_l2_norm<1, Q, K, V>, grid, q, k, q_shape, k_shape, q_blocks);
    else
      launch(context, qk_l2_norm<kHeldChunks, Q, K, V>, grid, q, k, q_shape, k_shape, q_blocks);
  });
}

}  // namespace sluice::backend::cuda
