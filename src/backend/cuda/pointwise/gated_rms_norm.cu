// out = x * rsqrt(mean(x^2) + eps) * weight * silu(z), per head (norm.cuh). Bytes: x, z and out once.
#include "sluice/ops/pointwise/gated_rms_norm.h"

#include "backend/cuda/device/activation.cuh"
#include "backend/cuda/pointwise/norm.cuh"

namespace sluice::backend::cuda::pointwise {

namespace {

template <class T, class Gate>
struct GatedRmsNorm {
  static constexpr int kV = kChunk<T>;
  struct Raw {
    Chunk<T, kV> x;
    Chunk<Gate, kV> z;
  };

  ChunkedRows<const void*> x;
  ChunkedRows<const void*> z;
  ChunkedRows<void*> out;
  NormWeight weight;

  struct Row {
    const T* x;
    const Gate* z;
    T* out;
    bool x_aligned;
    bool z_aligned;
    bool out_aligned;

    __device__ Raw load(long long at, long long left) const {
      Raw raw;
      raw.x = load_chunk<kV>(x + at, left, x_aligned);
      raw.z = load_chunk<kV>(z + at, left, z_aligned);
      return raw;
    }
    __device__ void values(const Raw& raw, long long, long long, float (&v)[kV]) const { widen(raw.x, v); }
    __device__ Raw again(long long at, long long left) const { return load(at, left); }
    __device__ void widen_again(const Raw& raw, float (&v)[kV]) const { widen(raw.x, v); }
    __device__ void write(const Raw& raw, long long at, long long left, float (&v)[kV]) const {
      float gate[kV];
      widen(raw.z, gate);
#pragma unroll
      for (int i = 0; i < kV; ++i) v[i] *= silu(gate[i]);
      store_chunk(narrow<T>(v), out + at, left, out_aligned);
    }
  };
  __device__ Row row(long long i) const {
    return {x.template row<T>(i), z.template row<Gate>(i), out.template row<T>(i), x.aligned, z.aligned,
            out.aligned};
  }
};

}  // namespace

}  // namespace sluice::backend::cuda::pointwise

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::GatedRmsNorm& op) {
  using namespace pointwise;
  with_activations(op.x.dtype, op.z.dtype, [&]<class T, class Gate>() {
    constexpr int V = kChunk<T>;
    const GatedRmsNorm<T, Gate> norm{{op.x, V}, {op.z, V}, {op.out, V}, {op.weight, V}};
    const auto width = op.x.dim(2);
    launch_norm(context, norm, {norm.x.offsets.count, width, static_cast<double>(width), op.eps, 1});
  });
}

}  // namespace sluice::backend::cuda
