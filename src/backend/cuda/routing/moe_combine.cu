// out = residual + sum_j weights[j] * expert_out[j] + sigmoid(shared_gate) * shared_out, summed in this order
// in F32, rounded once.
//
// A thread computes one 16-byte chunk of out; a block computes 64 chunks of one token. The experts' chunks
// are loaded several at a time before they are summed, and all other inputs with the first of them. Bytes:
// every input once, out once; out may share an input's memory.
#include "sluice/ops/routing/moe_combine.h"

#include "backend/cuda/device/activation.cuh"
#include "backend/cuda/device/chunk.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::routing {

namespace {

constexpr int kThreads = 64;
constexpr int kInFlight = 8;  // experts loaded at a time

struct CombineCall {
  ChunkedRows<const void*> residual;
  ChunkedRows<void*> out;
  const void* expert_out;
  long long expert_token_stride;
  long long expert_slot_stride;
  const float* weights;
  long long weight_stride;
  const void* shared_out;
  long long shared_stride;
  Parameter shared_gate;
  long long gate_stride;
  long long slots;
  long long width;
  unsigned column_blocks;
};

template <int V, class T>
__device__ __forceinline__ void add_scaled(const Chunk<T, V>& chunk, float weight, float (&sum)[V]) {
#pragma unroll
  for (int i = 0; i < V; ++i) sum[i] += weight * to_float(chunk.values[i]);
}

template <class Expert, bool kWhole, int V>
__device__ __forceinline__ void add_experts(const CombineCall& call, long long token, long long at,
                                            float (&sum)[V]) {
  const Expert* experts = static_cast<const Expert*>(call.expert_out) + token * call.expert_token_stride + at;
  const float* weights = call.weights + token * call.weight_stride;
  const long long left = call.width - at;
  for (long long first = 0; first < call.slots; first += kInFlight) {
    Chunk<Expert, V> chunk[kInFlight];
    float weight[kInFlight];
#pragma unroll
    for (int j = 0; j < kInFlight; ++j)
      if (first + j < call.slots) {
        chunk[j] = load_chunk<V>(experts + (first + j) * call.expert_slot_stride, left, kWhole);
        weight[j] = weights[first + j];
      }
#pragma unroll
    for (int j = 0; j < kInFlight; ++j)
      if (first + j < call.slots) add_scaled(chunk[j], weight[j], sum);
  }
}

// kWhole: every chunk of every field is complete and aligned.
template <class T, class Expert, class Shared, bool kWhole>
__global__ void __launch_bounds__(kThreads) moe_combine(CombineCall call) {
  constexpr int V = kChunk<T>;
  const long long token = blockIdx.x / call.column_blocks;
  const long long at = (blockIdx.x % call.column_blocks * kThreads + threadIdx.x) * V;
  const long long left = call.width - at;
  wait_for_inputs();
  allow_successor();
  if (left <= 0) return;
  const Chunk<T, V> residual = load_chunk<V>(call.residual.row<T>(token) + at, left, kWhole);
  Chunk<Shared, V> shared{};
  float gate = 1.0f;
  if (call.shared_out != nullptr) {
    shared = load_chunk<V>(static_cast<const Shared*>(call.shared_out) + token * call.shared_stride + at,
                           left, kWhole);
    if (call.shared_gate.present()) gate = sigmoid(call.shared_gate[token * call.gate_stride]);
  }
  float sum[V];
  widen(residual, sum);
  add_experts<Expert, kWhole>(call, token, at, sum);
  if (call.shared_out != nullptr) add_scaled(shared, gate, sum);
  store_chunk(narrow<T>(sum), call.out.row<T>(token) + at, left, kWhole);
}

template <class T>
CombineCall combine_call(const ops::MoeCombine& op) {
  constexpr int V = kChunk<T>;
  const long long width = op.residual.dim(1);
  const bool shared = op.shared_out.present();
  return {{op.residual, V},
          {op.out, V},
          op.expert_out.data,
          op.expert_out.strides[0],
          op.expert_out.strides[1],
          static_cast<const float*>(op.weights.data),
          op.weights.strides[0],
          op.shared_out.data,
          shared ? op.shared_out.strides[0] : 0,
          {op.shared_gate.data, op.shared_gate.dtype},
          op.shared_gate.present() ? op.shared_gate.strides[0] : 0,
          op.weights.dim(1),
          width,
          to_unsigned(divide_up<long long>(width, V * kThreads))};
}

}  // namespace

}  // namespace sluice::backend::cuda::routing

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::MoeCombine& op) {
  using namespace routing;
  const ops::DType shared = op.shared_out.present() ? op.shared_out.dtype : op.residual.dtype;
  with_activations(op.residual.dtype, op.expert_out.dtype, [&]<class T, class Expert>() {
    with_activation(shared, [&]<class Shared>() {
      const CombineCall call = combine_call<T>(op);
      const auto blocks = to_unsigned(op.residual.dim(0)) * call.column_blocks;
      const bool whole = call.residual.aligned && call.out.aligned &&
                         chunks_aligned(op.expert_out, kChunk<T>) &&
                         (call.shared_out == nullptr || chunks_aligned(op.shared_out, kChunk<T>));
      launch(context, whole ? moe_combine<T, Expert, Shared, true> : moe_combine<T, Expert, Shared, false>,
             {dim3(blocks), dim3(kThreads)}, call);
    });
  });
}

}  // namespace sluice::backend::cuda
