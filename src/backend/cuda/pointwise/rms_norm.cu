// out = x * rsqrt(mean(x^2) + eps) * weight over rows of D (norm.cuh). Bytes: x and out once.
#include "sluice/ops/pointwise/rms_norm.h"

#include "backend/cuda/pointwise/norm.cuh"

namespace sluice::backend::cuda::pointwise {

namespace {

template <class T>
struct RmsNorm {
  static constexpr int kV = kChunk<T>;
  using Raw = Chunk<T, kV>;

  ChunkedRows<const void*> x;
  ChunkedRows<void*> out;
  NormWeight weight;

  struct Row {
    const T* x;
    T* out;
    bool x_aligned;
    bool out_aligned;

    __device__ Raw load(long long at, long long left) const {
      return load_chunk<kV>(x + at, left, x_aligned);
    }
    __device__ void values(const Raw& raw, long long, long long, float (&v)[kV]) const { widen(raw, v); }
    __device__ Raw again(long long at, long long left) const { return load(at, left); }
    __device__ void widen_again(const Raw& raw, float (&v)[kV]) const { widen(raw, v); }
    __device__ void write(const Raw&, long long at, long long left, const float (&v)[kV]) const {
      store_chunk(narrow<T>(v), out + at, left, out_aligned);
    }
  };
  __device__ Row row(long long i) const {
    return {x.template row<T>(i), out.template row<T>(i), x.aligned, out.aligned};
  }
};

}  // namespace

}  // namespace sluice::backend::cuda::pointwise

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::RmsNorm& op) {
  using namespace pointwise;
  with_activation(op.x.dtype, [&]<class T>() {
    constexpr int V = kChunk<T>;
    const RmsNorm<T> norm{{op.x, V}, {op.out, V}, {op.weight, V}};
    const auto width = op.x.shape.back();
    launch_norm(context, norm, {norm.x.offsets.count, width, static_cast<double>(width), op.eps, 1});
  });
}

}  // namespace sluice::backend::cuda
