// residual += delta; out = residual * rsqrt(mean(residual^2) + eps) * weight over rows of D (norm.cuh). The
// norm reads the residual as stored, so the bits are those of add followed by rms_norm. Bytes: residual
// twice, delta and out once.
#include "sluice/ops/pointwise/add_rms_norm.h"

#include "backend/cuda/pointwise/norm.cuh"

namespace sluice::backend::cuda::pointwise {

namespace {

template <class T, class Delta>
struct AddRmsNorm {
  static constexpr int kV = kChunk<T>;
  struct Raw {
    Chunk<T, kV> residual;
    Chunk<Delta, kV> delta;
  };

  ChunkedRows<void*> residual;
  ChunkedRows<const void*> delta;
  ChunkedRows<void*> out;
  NormWeight weight;

  struct Row {
    T* residual;
    const Delta* delta;
    T* out;
    bool residual_aligned;
    bool delta_aligned;
    bool out_aligned;

    __device__ Raw load(long long at, long long left) const {
      Raw raw;
      raw.residual = load_chunk<kV>(static_cast<const T*>(residual) + at, left, residual_aligned);
      raw.delta = load_chunk<kV>(delta + at, left, delta_aligned);
      return raw;
    }
    __device__ void values(const Raw& raw, long long at, long long left, float (&v)[kV]) const {
      float added[kV];
      widen(raw.residual, v);
      widen(raw.delta, added);
#pragma unroll
      for (int i = 0; i < kV; ++i) v[i] += added[i];
      const Chunk<T, kV> stored = narrow<T>(v);
      store_chunk(stored, residual + at, left, residual_aligned);
      widen(stored, v);
    }
    __device__ Raw again(long long at, long long left) const {
      Raw raw;
      raw.residual = load_chunk<kV>(static_cast<const T*>(residual) + at, left, residual_aligned);
      return raw;
    }
    __device__ void widen_again(const Raw& raw, float (&v)[kV]) const {
      widen(raw.residual, v);
    }
    __device__ void write(const Raw&, long long at, long long left, const float (&v)[kV]) const {
      store_chunk(narrow<T>(v), out + at, left, out_aligned);
    }
  };
  __device__ Row row(long long i) const {
    return {residual.template row<T>(i),
            delta.template row<Delta>(i),
            out.template row<T>(i),
            residual.aligned,
            delta.aligned,
            out.aligned};
  }
};

}  // namespace

}  // namespace sluice::backend::cuda::pointwise

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::AddRmsNorm& op) {
  using namespace pointwise;
  with_activations(op.residual.dtype, op.delta.dtype, [&]<class T, class Delta>() {
    constexpr int V = kChunk<T>;
    const AddRmsNorm<T, Delta> norm{{op.residual, V}, {op.delta, V}, {op.out, V}, {op.weight, V}};
    const auto width = op.residual.dim(1);
    launch_norm(context, norm, {op.residual.dim(0), width, static_cast<double>(width), op.eps, 1});
  });
}

}  // namespace sluice::backend::cuda
