// delta_step for many sequences: one block per multiprocessor loops over key heads of sequences, with the
// value heads that share them. The results are those of delta_step.cu, bit for bit.
//
// A warp has sixteen rows of every state. They are prefetched into the warp's own ring buffer in shared
// memory, three value heads ahead, so copies never wait for computation; from there they go to registers, and
// from those directly back to memory. Blocks share nothing. Bytes: as in delta_step.cu.
#include "backend/cuda/delta/delta_step.cuh"
#include "backend/cuda/device/hopper.cuh"

namespace sluice::backend::cuda::delta {

namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kWidth = kWarps * kWarpRows;  // of a value head
constexpr int kStages = 3;
constexpr int kSliceFloats = kWarpRows * kKeyWidth;  // per warp
constexpr int kSharedBytes = kStages * kWarps * kSliceFloats * 4;
static_assert(kThreads == 2 * kKeyWidth, "a thread has a channel of q or one of k");

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
// The key heads that a block computes, skipping sequences without tokens.
struct HeadWalk {
  const StepCall& call;
  int item;
  SequencePart part{};

  __device__ __forceinline__ explicit HeadWalk(const StepCall& call) : call(call), item(to_int(blockIdx.x)) {
    find();
  }
  __device__ __forceinline__ bool inside() const { return item < call.sequences.count * call.key_heads; }
  __device__ __forceinline__ int key_head() const { return item % call.key_heads; }
  __device__ __forceinline__ void advance() {
    item += to_int(gridDim.x);
    find();
  }

 private:
  __device__ __forceinline__ void find() {
    for (; inside(); item += to_int(gridDim.x)) {
      part = sequence_part(call.sequences, item / call.key_heads, call.slots, call.fault);
      if (part.tokens() > 0) return;
    }
  }
};

// The ring buffer of a warp's rows of the states that its block computes, in that order.
class StateRing {
 public:
  __device__ __forceinline__ StateRing(const StepCall& call, float* memory, Barrier (&full)[kStages])
      : walk_(call), memory_(memory), full_(full) {
    for (int i = 0; i < kStages; ++i) ask();
  }
  __device__ __forceinline__ void take(StateRows<kWarpRows, kPer, kPer>& state) {
    full_[stage_].wait(to_unsigned(phase_));
    state.load(memory_ + stage_ * kSliceFloats + threadIdx.x % kWarp * kPer, kKeyWidth);
    __syncwarp();
    ask();
  }

 private:
  // Fills the stage that was consumed last.
  __device__ __forceinline__ void ask() {
    if (walk_.inside()) {
      const StepCall& call = walk_.call;
      const int head = walk_.key_head() * (call.value_heads / call.key_heads) + head_;
      if (threadIdx.x % kWarp == 0)
        full_[stage_].fill(memory_ + stage_ * kSliceFloats,
                           call.state + walk_.part.slot * call.state_strides[0] +
                               head * call.state_strides[1] + threadIdx.x / kWarp * kSliceFloats,
                           kSliceFloats * 4);
      if (++head_ == call.value_heads / call.key_heads) {
        head_ = 0;
        walk_.advance();
      }
    }
    if (++stage_ == kStages) {
      stage_ = 0;
      ++turns_;
      phase_ = (turns_ + 1) % 2;
    }
  }

  HeadWalk walk_;
  float* memory_;
  Barrier (&full_)[kStages];
  int head_ = 0;
  int stage_ = 0;
  int turns_ = 0;
  int phase_ = 1;
};

// A thread's inputs for one token, loaded ahead of their use.
template <class T>
struct TokenInputs {
  float key;    // or query
  float value;  // only of a thread that has a channel of v
  float z;
  float a;
  float b;

  __device__ __forceinline__ void load(const StepCall& call, int t, int head, int channel, int v_channel,
                                       int row) {
    const T* const x = static_cast<const T*>(call.qkv) + t * call.qkv_stride;
    key = to_float(x[channel]);
    if (v_channel >= 0) value = to_float(x[v_channel]);
    z = to_float(static_cast<const T*>(call.z)[t * call.z_strides[0] + head * call.z_strides[1] + row]);
    a = call.a[t * call.a_stride + head];
    b = call.b[t * call.b_stride + head];
  }
};
#endif

// kEarly: the preceding launch does not write the states.
template <class T, bool kEarly>
__global__ void __launch_bounds__(kThreads, 1) delta_steps(const __grid_constant__ StepCall call) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  constexpr int kRowLanes = kWarp / kWarpRows;
  constexpr int kOrder = 4;  // number of warps whose squares are added first
  extern __shared__ __align__(128) float stages[];
  __shared__ __align__(16) float keys[2][2][kKeyWidth];  // two buffers; queries, then keys
  __shared__ float values[2][kWidth];
  __shared__ double squares[2][kWarps];
  __shared__ Barrier full[kWarps][kStages];
  const int thread = threadIdx.x;
  const int lane = thread % kWarp;
  const int warp = thread / kWarp;
  const int ratio = call.value_heads / call.key_heads;
  const int row = warp * kWarpRows + lane / kRowLanes;
  if (lane == 0) {
    for (Barrier& barrier : full[warp]) barrier.set_up(1);
    publish_barriers();
  }
  __syncwarp();
  if constexpr (!kEarly) wait_for_inputs();
  StateRing ring(call, stages + warp * kStages * kSliceFloats, full[warp]);
  if constexpr (kEarly) wait_for_inputs();
  allow_successor();
  const float norm_weight = call.norm_weight[row];
  int turn = 0;
  for (HeadWalk walk(call); walk.inside(); walk.advance()) {
    float* const conv = call.conv_state + walk.part.slot * call.conv_strides[0];
    const int kind = thread / kKeyWidth;  // 0: q, 1: k
    const int channel = (kind * call.key_heads + walk.key_head()) * kKeyWidth + thread % kKeyWidth;
    Channel before, key_conv, value_conv;
    before.load_taps(call, channel);
    before.load(conv + channel, call.conv_strides[1]);
    for (int h = 0; h < ratio; ++h) {
      const int head = walk.key_head() * ratio + h;
      const int v_channel = thread < kWidth ? 2 * call.key_heads * kKeyWidth + head * kWidth + thread : -1;
      if (v_channel >= 0) {
        value_conv.load_taps(call, v_channel);
        value_conv.load(conv + v_channel, call.conv_strides[1]);
      }
      TokenInputs<T> next;
      next.load(call, walk.part.begin, head, channel, v_channel, row);
      const float a_log = call.a_log[head];
      const float dt_bias = call.dt_bias[head];
      StateRows<kWarpRows, kPer, kPer> state;
      ring.take(state);
      key_conv = before;
      for (int t = walk.part.begin; t < walk.part.end; ++t) {
        const TokenInputs<T> token = next;
        if (t + 1 < walk.part.end) next.load(call, t + 1, head, channel, v_channel, row);
        keys[turn][kind][thread % kKeyWidth] = key_conv.take(token.key);
        if (v_channel >= 0) values[turn][thread] = value_conv.take(token.value);
        __syncthreads();
        float q[kPer], k[kPer];
        load_vector(keys[turn][0] + lane * kPer, q);
        load_vector(keys[turn][1] + lane * kPer, k);
        normalize(q, call.qk_eps, rsqrtf(static_cast<float>(kKeyWidth)));
        normalize(k, call.qk_eps, 1.0f);
        const float o = state.step(k, q, values[turn][row], expf(-decay_rate(a_log, token.a + dt_bias)),
                                   sigmoid(token.b));
        double square = static_cast<double>(o) * o;
#pragma unroll
        for (int step = kRowLanes; step < kWarp; step *= 2)
          square += __shfl_xor_sync(0xffffffffu, square, step);
        if (lane == 0) squares[turn][warp] = square;
        __syncthreads();
        double sum = 0;
#pragma unroll
        for (int first = 0; first < kWarps; first += kOrder) {
          double some = 0;
#pragma unroll
          for (int w = first; w < first + kOrder; ++w) some += squares[turn][w];
          sum += some;
        }
        const float factor = norm_factor(sum * call.per_row, call.eps);
        if (lane % kRowLanes == 0)
          static_cast<T*>(call.out)[t * call.out_strides[0] + head * call.out_strides[1] + row] =
              from_float<T>(o * factor * norm_weight * silu(token.z));
        turn ^= 1;  // a warp that is a token ahead writes to the other buffer
      }
      state.store(call.state + walk.part.slot * call.state_strides[0] + head * call.state_strides[1] +
                      warp * kSliceFloats + lane * kPer,
                  kKeyWidth);
      if (v_channel >= 0) value_conv.store(conv + v_channel, call.conv_strides[1]);
    }
    key_conv.store(conv + channel, call.conv_strides[1]);
  }
#endif
}

}  // namespace

bool many_steps(const StepCall& call, const DeviceInfo& device) {
  return device.compute_capability == 90 && call.value_width == kWidth &&
         call.state_strides[2] == kKeyWidth && device.shared_bytes_per_block >= kSharedBytes + 8192 &&
         4 * call.sequences.count * call.key_heads >= 3 * device.multiprocessors;
}

void launch_steps(Context& context, const StepCall& call, ops::DType type, bool early) {
  const int blocks = min(call.sequences.count * call.key_heads, context.device().multiprocessors);
  const Grid grid{dim3(to_unsigned(blocks)), dim3(kThreads), kSharedBytes};
  with_activation(type, [&]<class T>() {
    launch(context, early ? delta_steps<T, true> : delta_steps<T, false>, grid, call);
  });
}

}  // namespace sluice::backend::cuda::delta
