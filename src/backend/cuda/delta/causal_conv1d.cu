// out[t] = silu(sum_j virtual[t+j] * weight[:,j]), where `virtual` is the W-1 rows of the state followed by
// x; the state then holds the last W-1 rows. All kernels add taps in the order j = 0..W-1.
//
// W = 4: a thread computes kVector channels and keeps the last three rows in registers. With few tokens per
// sequence it computes the whole sequence and writes the state, in one launch. With many it computes a run of
// tokens, and a second launch writes the states once the old ones are no longer needed. Other widths: a
// thread per token and channel, and the same second launch. Bytes: x and out once (and 3 rows of each run
// again, from the cache), the state twice.
#include <algorithm>
#include <type_traits>

#include "backend/cuda/delta/save_places.cuh"
#include "backend/cuda/device/activation.cuh"
#include "backend/cuda/device/element.cuh"
#include "backend/cuda/device/vector_access.cuh"
#include "backend/cuda/runtime/launch.h"
#include "backend/cuda/runtime/sequence_part.cuh"
#include "base/integer_cast.h"
#include "sluice/ops/delta/causal_conv1d.h"

namespace sluice::backend::cuda::delta {

namespace {

constexpr int kWidth = 4;  // taps of the kernels that keep their window in registers
// Tokens per thread for long sequences. Fewer tokens give more threads, but each thread first reads its taps
// and the three rows before its own.
constexpr int kLongRun = 32;
constexpr int kShortRun = 8;
constexpr int kManyTokens = 2048;
constexpr int kAhead = 4;  // rows loaded before the first is used

struct ConvCall {
  const void* x;
  const void* weight;
  float* state;
  void* out;
  long long x_stride;
  long long out_stride;
  long long weight_stride;
  long long state_stride;  // between rows
  long long slot_stride;
  long long slots;
  DeviceSequences sequences;
  Fault* fault;
  int channels;
  int width;
  int run;  // tokens per thread
  SavePlaces saves;
  float* saved;
  long long saved_strides[2];  // save, row
};

// SiLU of a sum that is rounded to T.
template <class T>
__device__ __forceinline__ float activate(float x) {
  if constexpr (std::is_same_v<T, float>) return x / (1.0f + expf(-x));
  return silu(x);
}

// Row `row` of the virtual input of a sequence: the W-1 rows of the state, then x.
template <class T, int kVector>
__device__ __forceinline__ void load_virtual(const ConvCall& call, const SequencePart& part, int width,
                                             int row, int channel, float (&to)[kVector]) {
  if (row < width - 1)
    load_vector(call.state + part.slot * call.slot_stride + row * call.state_stride + channel, to);
  else
    load_vector(static_cast<const T*>(call.x) + (part.begin + row - (width - 1)) * call.x_stride + channel,
                to);
}

// Computes tokens [first, last) of a sequence; leaves in `window` the three rows that the next token would
// use.
template <class T, class Weight, int kVector>
__device__ __forceinline__ void convolve_run(const ConvCall& call, const SequencePart& part, int first,
                                             int last, int channel, float (&window)[kWidth - 1][kVector]) {
  float taps[kVector][kWidth];
#pragma unroll
  for (int c = 0; c < kVector; ++c)
    load_vector(static_cast<const Weight*>(call.weight) + (channel + c) * call.weight_stride, taps[c]);
#pragma unroll
  for (int r = 0; r < kWidth - 1; ++r)
    load_virtual<T>(call, part, kWidth, first - part.begin + r, channel, window[r]);
  const T* x = static_cast<const T*>(call.x) + channel;
  T* out = static_cast<T*>(call.out) + channel;
  for (int t = first; t < last; t += kAhead) {
    float rows[kAhead][kVector];
#pragma unroll
    for (int a = 0; a < kAhead; ++a)
      if (t + a < last) load_vector(x + (t + a) * call.x_stride, rows[a]);
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      if (t + a >= last) break;
      float sum[kVector];
#pragma unroll
      for (int c = 0; c < kVector; ++c) {
        float total = window[0][c] * taps[c][0];
        total = fmaf(window[1][c], taps[c][1], total);
        total = fmaf(window[2][c], taps[c][2], total);
        total = fmaf(rows[a][c], taps[c][3], total);
        sum[c] = activate<T>(total);
        window[0][c] = window[1][c];
        window[1][c] = window[2][c];
        window[2][c] = rows[a][c];
      }
      store_vector(out + (t + a) * call.out_stride, sum);
    }
  }
}

// Grid: channels, sequences.
template <class T, class Weight, int kVector>
__global__ void conv_sequences(ConvCall call) {
  wait_for_inputs();
  allow_successor();
  const int channel = to_int(blockIdx.x * blockDim.x + threadIdx.x) * kVector;
  const SequencePart part = sequence_part(call.sequences, to_int(blockIdx.y), call.slots, call.fault);
  if (channel >= call.channels || part.tokens() == 0) return;
  float window[kWidth - 1][kVector];
  convolve_run<T, Weight>(call, part, part.begin, part.end, channel, window);
#pragma unroll
  for (int r = 0; r < kWidth - 1; ++r)
    store_vector(call.state + part.slot * call.slot_stride + r * call.state_stride + channel, window[r]);
}

// Grid: channels, runs of tokens.
template <class T, class Weight, int kVector>
__global__ void conv_runs(ConvCall call) {
  wait_for_inputs();
  allow_successor();
  const int channel = to_int(blockIdx.x * blockDim.x + threadIdx.x) * kVector;
  if (channel >= call.channels) return;
  const int begin = to_int(blockIdx.y) * call.run;
  const int end = min(begin + call.run, call.sequences.tokens);
  for (int b = call.sequences.of_token(begin); b < call.sequences.count; ++b) {
    if (call.sequences.begin(b) >= end) break;
    const SequencePart part = sequence_part(call.sequences, b, call.slots, call.fault);
    const int first = max(part.begin, begin);
    const int last = min(part.end, end);
    float window[kWidth - 1][kVector];
    if (first < last) convolve_run<T, Weight>(call, part, first, last, channel, window);
  }
}

// Grid: channels, tokens. Any width.
template <class T, class Weight>
__global__ void conv_tokens(ConvCall call) {
  wait_for_inputs();
  allow_successor();
  const int channel = blockIdx.x * blockDim.x + threadIdx.x;
  if (channel >= call.channels) return;
  const Weight* taps = static_cast<const Weight*>(call.weight) + channel * call.weight_stride;
  for (int token = blockIdx.y; token < call.sequences.tokens; token += to_int(gridDim.y)) {
    const SequencePart part =
        sequence_part(call.sequences, call.sequences.of_token(token), call.slots, call.fault);
    if (token < part.begin || token >= part.end) continue;
    float sum = 0;
    for (int j = 0; j < call.width; ++j) {
      float row[1];
      load_virtual<T>(call, part, call.width, token - part.begin + j, channel, row);
      sum = fmaf(row[0], to_float(taps[j]), sum);
    }
    static_cast<T*>(call.out)[token * call.out_stride + channel] = from_float<T>(activate<T>(sum));
  }
}

// Grid: channels, sequences. Row r becomes virtual row T + r. That is a later row, so in ascending order no
// row is read after it was replaced.
template <class T>
__global__ void conv_states(ConvCall call) {
  wait_for_inputs();
  allow_successor();
  const int channel = blockIdx.x * blockDim.x + threadIdx.x;
  const SequencePart part = sequence_part(call.sequences, to_int(blockIdx.y), call.slots, call.fault);
  if (channel >= call.channels || part.tokens() == 0) return;
  for (int r = 0; r < call.width - 1; ++r) {
    float row[1];
    load_virtual<T>(call, part, call.width, part.tokens() + r, channel, row);
    call.state[part.slot * call.slot_stride + r * call.state_stride + channel] = row[0];
  }
}

// Grid: channels, saves. Runs before the states are updated.
template <class T>
__global__ void conv_saves(ConvCall call) {
  wait_for_inputs();
  allow_successor();
  if (blockIdx.x == 0 && blockIdx.y == 0) call.saves.check(call.sequences, call.fault);
  const int channel = blockIdx.x * blockDim.x + threadIdx.x;
  const int save = blockIdx.y;
  const int end = call.saves.at[save];
  if (channel >= call.channels || end <= 0 || end > call.sequences.tokens) return;
  const SequencePart part =
      sequence_part(call.sequences, call.sequences.of_token(end - 1), call.slots, call.fault);
  if (part.tokens() == 0) return;
  for (int r = 0; r < call.width - 1; ++r) {
    float row[1];
    load_virtual<T>(call, part, call.width, end - part.begin + r, channel, row);
    call.saved[save * call.saved_strides[0] + r * call.saved_strides[1] + channel] = row[0];
  }
}

bool vectorizable(const ops::CausalConv1d& op, int elements) {
  return op.x.dim(1) % elements == 0 && aligned(op.x, elements) && aligned(op.out, elements) &&
         aligned(op.state, elements) && aligned(op.weight, kWidth);
}

dim3 channel_grid(int channels, int vector, int threads, long long rows) {
  return dim3(to_unsigned(divide_up(channels, vector * threads)), to_unsigned(rows));
}

template <class T, class Weight, int kVector>
void launch_window(Context& context, const ConvCall& call) {
  const int count = call.sequences.count;
  const int tokens = call.sequences.tokens;
  if (tokens <= 8 * count) {
    const int threads = 64;
    launch(context, conv_sequences<T, Weight, kVector>,
           {channel_grid(call.channels, kVector, threads, count), dim3(threads)}, call);
    return;
  }
  const int threads = 128;
  launch(context, conv_runs<T, Weight, kVector>,
         {channel_grid(call.channels, kVector, threads, divide_up(tokens, call.run)), dim3(threads)}, call);
  launch(context, conv_states<T>, {channel_grid(call.channels, 1, threads, count), dim3(threads)}, call);
}

template <class T, class Weight>
void launch_any_width(Context& context, const ConvCall& call) {
  const int threads = 128;
  launch(context, conv_tokens<T, Weight>,
         {channel_grid(call.channels, 1, threads, std::min(call.sequences.tokens, 65535)), dim3(threads)},
         call);
  if (call.width > 1)
    launch(context, conv_states<T>,
           {channel_grid(call.channels, 1, threads, call.sequences.count), dim3(threads)}, call);
}

}  // namespace

}  // namespace sluice::backend::cuda::delta

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::CausalConv1d& op) {
  using namespace delta;
  const bool pooled = op.seq_starts.present();
  const ConvCall call{
      op.x.data,
      op.weight.data,
      static_cast<float*>(op.state.data),
      op.out.data,
      op.x.strides[0],
      op.out.strides[0],
      op.weight.strides[0],
      op.state.strides[pooled ? 1 : 0],
      pool_stride(op.state, pooled),
      pooled ? op.state.dim(0) : 1,
      DeviceSequences(op, op.x.dim(0)),
      context.fault(),
      to_int(op.x.dim(1)),
      to_int(op.weight.dim(1)),
      op.x.dim(0) < kManyTokens ? kShortRun : kLongRun,
      SavePlaces(op),
      static_cast<float*>(op.saved.data),
      {op.saved.present() ? op.saved.strides[0] : 0, op.saved.present() ? op.saved.strides[1] : 0}};
  with_activation(op.x.dtype, [&]<class T>() {
    if (call.saves.count > 0)
      launch(context, conv_saves<T>, {channel_grid(call.channels, 1, 128, call.saves.count), dim3(128)},
             call);
    with_parameter(op.weight.dtype, [&]<class Weight>() {
      constexpr int kVector = 16 / sizeof(T);
      if (call.width == kWidth && vectorizable(op, kVector))
        launch_window<T, Weight, kVector>(context, call);
      else if (call.width == kWidth && aligned(op.weight, kWidth))
        launch_window<T, Weight, 1>(context, call);
      else
        launch_any_width<T, Weight>(context, call);
    });
  });
}

}  // namespace sluice::backend::cuda
