// One block that writes what it publishes to pinned memory and raises a flag there. Then it polls the host's
// flag for the answer, or leaves that to a later launch. No successor may start early, because it must see
// the answer.
#include "backend/cuda/runtime/launch.h"
#include "backend/cuda/runtime/meeting.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda {

namespace {

constexpr int kThreads = 256;

__device__ __forceinline__ unsigned load_flag(const unsigned* flag) {
  unsigned value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}
__device__ __forceinline__ void raise_flag(unsigned* flag, unsigned value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
// Bypasses all caches: the host may have just written it.
__device__ __forceinline__ unsigned load_word(const unsigned* from) {
  return *static_cast<const volatile unsigned*>(from);
}
// Whether `count` has not reached `number` yet; counters wrap around.
__device__ __forceinline__ bool behind(unsigned count, unsigned number) {
  return static_cast<int>(count - number) < 0;
}

// Returns whether the host has abandoned the program.
__device__ __forceinline__ bool wait_for_host(const MeetingCall& call, unsigned number) {
  unsigned answered = 0;
  do answered = load_flag(&call.flags->answered);
  while (behind(answered, number));
  if (answered - number >= kLeft / 2) return true;
  const unsigned mark = load_word(&call.flags->mark);
  while (behind(load_flag(call.uploaded), mark)) {
  }
  return false;
}

__global__ void __launch_bounds__(kThreads) meet(const __grid_constant__ MeetingCall call) {
  __shared__ bool left;
  const int thread = threadIdx.x;
  wait_for_inputs();
  const unsigned number = *call.begun + 1;
  unsigned* to = call.outbox;
#pragma unroll
  for (int part = 0; part < 2; ++part) {
    for (int i = thread; i < call.shown_count[part]; i += kThreads) to[i] = call.shown[part][i];
    to += call.shown_count[part];
  }
  __threadfence_system();
  __syncthreads();
  if (thread == 0) raise_flag(call.raised, number);
  if (!call.waits) return;
  if (thread == 0) {
    *call.begun = number;
    left = wait_for_host(call, number);
  }
  __syncthreads();
  for (int i = thread; i < call.answer_count; i += kThreads)
    call.answer[i] = left ? 0 : load_word(call.inbox + i);
  if (call.rows == nullptr || left) return;
  const int rows = to_int(load_word(&call.flags->rows));
  for (int row = 0; row < rows; ++row) {
    unsigned* out = call.rows + static_cast<long long>(load_word(call.row_numbers + row)) * call.row_count;
    for (int i = thread; i < call.row_count; i += kThreads)
      out[i] = load_word(call.row_inbox + static_cast<long long>(row) * call.row_count + i);
  }
}

}  // namespace

void launch_meeting(Context& context, const MeetingCall& call) {
  launch(context, meet, {dim3(1), dim3(kThreads)}, call);
}

}  // namespace sluice::backend::cuda
