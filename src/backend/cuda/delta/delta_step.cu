// One step of Gated DeltaNet in one launch: q, k, v = silu(conv(qkv)); q and k scaled to lengths Dk^-1/2 and
// 1; the gated delta rule (state_rows.cuh); out = rms_norm(o) * weight * silu(z).
//
// A cluster of blocks computes one key head of a sequence and the value heads that share it; each warp has
// sixteen rows of their states. Every warp convolves its key head's q and k again, from the cache, which is
// cheaper than exchanging them. The blocks of a value head synchronise once per token, exchanging their parts
// of the sum of squares; by then all have read the convolution's state, so it may be replaced. Bytes: both
// states read and written once, everything else once. F32, the sum of squares in double. For keys of 128 and
// four taps; other calls run the separate ops.
#include "backend/cuda/delta/delta_step.cuh"

#include "backend/cuda/delta/delta_step.h"
#include "backend/cuda/device/cluster.cuh"
#include "ops/delta_step_parts.h"

namespace sluice::backend::cuda::delta {

namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
constexpr int kRows = kWarps * kWarpRows;
constexpr int kMaxCluster = 8;
static_assert(kThreads == kKeyWidth, "a thread has a channel of q and one of k");

// The sum over the value head's rows; the lane holds the square of row lane / 2.
__device__ __forceinline__ double sum_of_head(double square, int peer, int first_rank, int peers,
                                              double* warps, double* blocks) {
#pragma unroll
  for (int step = kWarp / kWarpRows; step < kWarp; step *= 2)
    square += __shfl_xor_sync(0xffffffffu, square, step);
  if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = square;
  __syncthreads();
  if (to_int(threadIdx.x) < peers) {
    double sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += warps[w];
    store_in_block(blocks + peer, to_unsigned(first_rank) + threadIdx.x, sum);
  }
  arrive_in_cluster();
  wait_for_cluster();
  double sum = 0;
  for (int i = 0; i < peers; ++i) sum += blocks[i];
  return sum;
}

// kEarly: the preceding launch does not write the states.
template <class T, bool kEarly>
__global__ void __launch_bounds__(kThreads, 3) delta_step(const __grid_constant__ StepCall call) {
  constexpr int kRowLanes = kWarp / kWarpRows;
  __shared__ __align__(16) float queries[kKeyWidth];
  __shared__ __align__(16) float keys[kKeyWidth];
  __shared__ float values[kRows];
  __shared__ double warps[kWarps];
  __shared__ double blocks[2][kMaxCluster];  // alternating: a block may be one token ahead
  arrive_in_cluster();
  const int thread = threadIdx.x;
  const int lane = thread % kWarp;
  const int cluster = call.value_heads / call.key_heads * call.head_blocks;
  const int rank = to_int(blockIdx.x) % cluster;
  const int key_head = to_int(blockIdx.x) / cluster % call.key_heads;
  const int peer = rank % call.head_blocks;
  const int head = key_head * (call.value_heads / call.key_heads) + rank / call.head_blocks;
  const int warp_row = thread / kWarp * kWarpRows;
  const int row = peer * kRows + warp_row + lane / kRowLanes;
  // A channel of q and one of k; the last threads also have one of v.
  const int value = thread - (kThreads - kRows);
  const int q_channel = key_head * kKeyWidth + thread;
  const int k_channel = call.key_heads * kKeyWidth + q_channel;
  const int v_channel = 2 * call.key_heads * kKeyWidth + head * call.value_width + peer * kRows + value;
  Channel q_conv, k_conv, v_conv;
  q_conv.load_taps(call, q_channel);
  k_conv.load_taps(call, k_channel);
  if (value >= 0) v_conv.load_taps(call, v_channel);
  const float a_log = call.a_log[head];
  const float dt_bias = call.dt_bias[head];
  const float norm_weight = call.norm_weight[row];
  wait_for_cluster();
  if constexpr (!kEarly) {
    wait_for_inputs();
    allow_successor();
  }
  const SequencePart part =
      sequence_part(call.sequences, to_int(blockIdx.x) / cluster / call.key_heads, call.slots, call.fault);
  if (part.tokens() == 0) return wait_for_inputs();

  float* const conv = call.conv_state + part.slot * call.conv_strides[0];
  q_conv.load(conv + q_channel, call.conv_strides[1]);
  k_conv.load(conv + k_channel, call.conv_strides[1]);
  if (value >= 0) v_conv.load(conv + v_channel, call.conv_strides[1]);
  float* const rows = call.state + part.slot * call.state_strides[0] + head * call.state_strides[1] +
                      (peer * kRows + warp_row) * call.state_strides[2] + lane * kPer;
  StateRows<kWarpRows, kPer, kPer> state;
  state.load(rows, call.state_strides[2]);
  if constexpr (kEarly) {
    wait_for_inputs();
    allow_successor();
  }
  for (int t = part.begin; t < part.end; ++t) {
    const T* x = static_cast<const T*>(call.qkv) + t * call.qkv_stride;
    const float z =
        to_float(static_cast<const T*>(call.z)[t * call.z_strides[0] + head * call.z_strides[1] + row]);
    const float a = call.a[t * call.a_stride + head];
    const float b = call.b[t * call.b_stride + head];
    queries[thread] = q_conv.take(to_float(x[q_channel]));
    keys[thread] = k_conv.take(to_float(x[k_channel]));
    if (value >= 0) values[value] = v_conv.take(to_float(x[v_channel]));
    __syncthreads();
    float q[kPer], k[kPer];
    load_vector(queries + lane * kPer, q);
    load_vector(keys + lane * kPer, k);
    normalize(q, call.qk_eps, rsqrtf(static_cast<float>(kKeyWidth)));
    normalize(k, call.qk_eps, 1.0f);
    const float o = state.step(k, q, values[warp_row + lane / kRowLanes],
                               expf(-decay_rate(a_log, a + dt_bias)), sigmoid(b));
    const double squares = sum_of_head(static_cast<double>(o) * o, peer, rank - peer, call.head_blocks, warps,
                                       blocks[(t - part.begin) % 2]);
    const float factor = norm_factor(squares * call.per_row, call.eps);
    if (lane % kRowLanes == 0)
      static_cast<T*>(call.out)[t * call.out_strides[0] + head * call.out_strides[1] + row] =
          from_float<T>(o * factor * norm_weight * silu(z));
    __syncthreads();  // before the next token's q, k and v
  }
  state.store(rows, call.state_strides[2]);
  // The blocks divide the channels of q and k among themselves.
  if (thread % cluster == rank) {
    q_conv.store(conv + q_channel, call.conv_strides[1]);
    k_conv.store(conv + k_channel, call.conv_strides[1]);
  }
  if (value >= 0) v_conv.store(conv + v_channel, call.conv_strides[1]);
}

bool supports(const ops::DeltaStep& op, const DeviceInfo& device) {
  return device.compute_capability >= 90 && op.state.shape.back() == kKeyWidth &&
         op.conv_weight.dim(1) == kTaps && op.conv_weight.dtype == ops::DType::f32 &&
         op.conv_weight.strides[0] == kTaps && op.z.dtype == op.qkv.dtype && aligned(op.conv_weight, kTaps) &&
         aligned(op.state, kPer) && op.z.dim(2) % kRows == 0 &&
         op.z.dim(1) / op.key_heads() * op.z.dim(2) <= kMaxCluster * kRows;
}

void run_parts(Context& context, const ops::DeltaStep& op) {
  const ops::DeltaStepParts parts(op, context.scratch(ops::DeltaStepParts::bytes(op)));
  run(context, parts.conv);
  run(context, parts.norm);
  run(context, parts.gates);
  run(context, parts.rule);
  run(context, parts.gate);
}

}  // namespace

}  // namespace sluice::backend::cuda::delta

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::DeltaStep& op) {
  delta::run_step(context, op, false);
}

}  // namespace sluice::backend::cuda

namespace sluice::backend::cuda::delta {

void run_step(Context& context, const ops::DeltaStep& op, bool early) {
  if (!supports(op, context.device())) return run_parts(context, op);
  const bool pooled = op.seq_starts.present();
  const int first = pooled ? 1 : 0;
  const StepCall call{op.qkv.data,
                      op.z.data,
                      op.out.data,
                      {op.a.data, op.a.dtype},
                      {op.b.data, op.b.dtype},
                      static_cast<const float*>(op.conv_weight.data),
                      {op.A_log.data, op.A_log.dtype},
                      {op.dt_bias.data, op.dt_bias.dtype},
                      {op.norm_weight.data, op.norm_weight.dtype},
                      static_cast<float*>(op.conv_state.data),
                      static_cast<float*>(op.state.data),
                      op.qkv.strides[0],
                      {op.z.strides[0], op.z.strides[1]},
                      {op.out.strides[0], op.out.strides[1]},
                      op.a.strides[0],
                      op.b.strides[0],
                      {pool_stride(op.conv_state, pooled), op.conv_state.strides[first]},
                      {pool_stride(op.state, pooled), op.state.strides[first], op.state.strides[first + 1]},
                      pooled ? op.state.dim(0) : 1,
                      DeviceSequences(op, op.qkv.dim(0)),
                      context.fault(),
                      to_int(op.key_heads()),
                      to_int(op.z.dim(1)),
                      to_int(op.z.dim(2)),
                      to_int(op.z.dim(2)) / kRows,
                      static_cast<float>(op.qk_eps),
                      static_cast<float>(op.eps),
                      1.0 / static_cast<double>(op.z.dim(2))};
  if (many_steps(call, context.device())) return launch_steps(context, call, op.qkv.dtype, early);
  const int blocks = call.sequences.count * call.key_heads * call.cluster();
  const Grid grid{dim3(to_unsigned(blocks)), dim3(kThreads)};
  // The states of several sequences fill more than one wave of blocks, and early blocks would only wait
  // beside the preceding ones.
  early = early && call.sequences.count == 1;
  with_activation(op.qkv.dtype, [&]<class T>() {
    launch_clusters(context, early ? delta_step<T, true> : delta_step<T, false>, to_unsigned(call.cluster()),
                    grid, call);
  });
}

}  // namespace sluice::backend::cuda::delta
