// The decode class of products with experts that have 4-bit weights. The sums are those of int4_decode.cu,
// bit for bit.
//
// The work is a list of items: 16 rows of an expert's weights (eight each of gate and up, if there are two)
// by up to eight of the rows that chose it. All items have the same number of bytes, so every unit of warps
// processes an equal share of the list whatever the experts are, and its ring buffer of weights continues
// across experts. Inputs are held in registers and reloaded when the next pass begins.
#include <algorithm>

#include "backend/cuda/linear/decode/expert_passes.cuh"
#include "backend/cuda/linear/decode/int4_inputs.cuh"
#include "backend/cuda/linear/decode/int4_product.cuh"
#include "backend/cuda/runtime/launch.h"

namespace sluice::backend::cuda::linear::decode {

namespace {

// The items of a unit: `left` consecutive ones, from `round` of `pass` on.
struct ItemWalk {
  int left;
  int pass;
  int round;

  __device__ __forceinline__ ItemWalk(int items, int unit, int units, int rounds) {
    const int share = items / units;
    const int longer = items - share * units;
    const int first = unit * share + min(unit, longer);
    left = share + (unit < longer ? 1 : 0);
    pass = first / rounds;
    round = first - pass * rounds;
  }
  // Returns whether the next item is in another pass.
  __device__ __forceinline__ bool advance(int rounds) {
    --left;
    if (++round < rounds) return false;
    round = 0;
    ++pass;
    return true;
  }
};

// A barrier for the warps that share a row.
template <class Shape>
__device__ __forceinline__ void unit_barrier(int unit) {
  if constexpr (Shape::kSharing == 1)
    __syncwarp();
  else if constexpr (Shape::kSharing == kExpertWarps)
    __syncthreads();
  else
    asm volatile("bar.sync %0, %1;" ::"r"(unit + 1), "n"(Shape::kSharing * kWarp) : "memory");
}

// If not `inside`, reads nothing and writes zeros; a branch would cost more.
__device__ __forceinline__ void copy_weights(unsigned to, const std::byte* from, bool inside) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(inside ? 16 : 0)
               : "memory");
}

// A tile that has arrived: where the lane reads its codes and its scales, which biases follow.
template <class Shape>
struct RingTile {
  unsigned codes_at;
  unsigned scales_at;

  // Codes of row lane / 4 + 8r.
  __device__ __forceinline__ uint2 codes(int r, int g) const {
    return load_shared_8(codes_at + 8 * r * kRingRowBytes + g * (kTileCodeBytes / kTileGroups));
  }
  __device__ __forceinline__ uint2 scales(int r) const {
    return load_shared_8(scales_at + 8 * r * Shape::kScalePitch);
  }
  __device__ __forceinline__ unsigned biases(int r) const {
    return load_shared_4(scales_at + (kTileRows + 8 * r) * Shape::kScalePitch + threadIdx.x % 2 * 4);
  }
  __device__ __forceinline__ void begin_tile() const {}
  __device__ __forceinline__ void end_tile() const {}
};

// Prefetches the weights of a unit's items into shared memory, kDepth items ahead: codes into the ring buffer
// of the warp that multiplies them, scales and biases into memory of the unit.
template <class Shape, int kDepth>
class ExpertRing {
 public:
  static constexpr int kSlotBytes = Shape::kWarpTiles * kTileRows * kRingRowBytes;  // per warp
  static constexpr int kBytes = kDepth * kSlotBytes;
  static constexpr int kScaleSlots = kDepth + 2;

  __device__ __forceinline__ ExpertRing(const LinearCall& call, const ExpertPlan& plan,
                                        const ExpertPasses& passes, const ItemWalk& walk, std::byte* shared)
      : call_(call), plan_(plan), passes_(passes), asked_(walk) {
    const unsigned warp = threadIdx.x / kWarp;
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned ring = shared_address(shared) + warp * kBytes;
    const unsigned scales =
        shared_address(shared + plan.scales) + warp / Shape::kSharing * (kScaleSlots * Shape::kScaleBytes);
    to_ = ring + lane / 8 * kRingRowBytes + lane % 8 * 16;
    codes_at_ = ring + lane / 4 * kRingRowBytes + lane % 4 * 8;
    scales_at_ = scales + lane / 4 * Shape::kScalePitch + warp % Shape::kSharing * 8;
    scales_to_ = scales + scale_kind() * (kTileRows * Shape::kScalePitch) + scale_row() * Shape::kScalePitch +
                 scale_column() * 16;
    find_pass();
    ask_scales();
    for (int i = 0; i < kDepth; ++i) ask();
  }

  // Waits until the oldest item and the next one's scales have arrived.
  __device__ __forceinline__ void begin_item() const {
    wait_for_copies<kDepth - 1>();
    __syncwarp();
  }
  // The warp's tile number `tile`, for multiply_tile_of().
  __device__ __forceinline__ RingTile<Shape> operator[](int tile) const {
    return {codes_at_ + slot_ + tile * kTileRows * kRingRowBytes,
            scales_at_ + scale_slot_ + tile * Shape::kSharing * kTileScaleBytes};
  }
  __device__ __forceinline__ void end_item() {
    __syncwarp();
    ask();
    scale_slot_ += Shape::kScaleBytes;
    if (scale_slot_ == kScaleSlots * Shape::kScaleBytes) scale_slot_ = 0;
  }

 private:
  static constexpr int kUnitThreads = Shape::kSharing * kWarp;
  static constexpr int kScaleChunks = kTileRows * Shape::kTiles;  // 16-byte chunks per item
  static constexpr int kRowChunks = Shape::kTiles / 2;            // chunks per row of scales
  static constexpr int kRowBytes = Shape::kTiles * kTileCodeBytes;
  static constexpr int kScaleRowBytes = Shape::kTiles * kTileScaleBytes;
  static_assert(kScaleChunks == kUnitThreads, "a thread copies one chunk of an item's scales");

  // Which of an item's chunks of scales and biases the thread copies.
  __device__ static __forceinline__ unsigned scale_kind() {
    return threadIdx.x % kUnitThreads / (kScaleChunks / 2);
  }
  __device__ static __forceinline__ unsigned scale_row() {
    return threadIdx.x % kUnitThreads / kRowChunks % kTileRows;
  }
  __device__ static __forceinline__ unsigned scale_column() { return threadIdx.x % kRowChunks; }

  // Computes the addresses for the pass and the round of asked_.
  __device__ __forceinline__ void find_pass() {
    if (asked_.left <= 0) return;
    const int expert = passes_[asked_.pass].expert;
    const int output = asked_.round * Shape::kOutputs;
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned part = threadIdx.x / kWarp % Shape::kSharing;
#pragma unroll
    for (int op = 0; op < Shape::kOperands; ++op)
      codes_[op] = call_.w[op][expert].values +
                   (output + to_int(lane / 8)) * static_cast<long long>(kRowBytes) + part * kTileCodeBytes +
                   lane % 8 * 16;
    const MatrixPointers at = call_.w[scale_row() / Shape::kOutputs][expert];
    scales_ = (scale_kind() == 0 ? at.scales : at.biases) +
              (output + to_int(scale_row() % Shape::kOutputs)) * static_cast<long long>(kScaleRowBytes) +
              scale_column() * 16;
  }
  __device__ __forceinline__ void ask_scales() {
    copy_weights(scales_to_ + asked_scales_, scales_, asked_.left > 0);
    asked_scales_ += Shape::kScaleBytes;
    if (asked_scales_ == kScaleSlots * Shape::kScaleBytes) asked_scales_ = 0;
  }
  // Starts to fill the slot that was consumed last, and to load the scales of the following item.
  __device__ __forceinline__ void ask() {
    const bool inside = asked_.left > 0;
#pragma unroll
    for (int tile = 0; tile < Shape::kWarpTiles; ++tile)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        copy_weights(to_ + slot_ + (tile * kTileRows + i * 4) * kRingRowBytes,
                     codes_[i * 4 / Shape::kOutputs] + i * 4 % Shape::kOutputs * kRowBytes +
                         tile * Shape::kSharing * kTileCodeBytes,
                     inside);
    if (asked_.advance(plan_.rounds)) {
      find_pass();
    } else {
#pragma unroll
      for (int op = 0; op < Shape::kOperands; ++op) codes_[op] += Shape::kOutputs * kRowBytes;
      scales_ += Shape::kOutputs * kScaleRowBytes;
    }
    ask_scales();
    close_copies();
    slot_ += kSlotBytes;
    if (slot_ == kDepth * kSlotBytes) slot_ = 0;
  }

  const LinearCall& call_;
  const ExpertPlan& plan_;
  const ExpertPasses& passes_;
  ItemWalk asked_;
  const std::byte* codes_[Shape::kOperands] = {};
  const std::byte* scales_ = nullptr;
  // Shared memory addresses that the lane writes and reads in the first slots, and offsets of the current
  // slots.
  unsigned to_;
  unsigned codes_at_;
  unsigned scales_to_;
  unsigned scales_at_;
  unsigned slot_ = 0;
  unsigned scale_slot_ = 0;
  unsigned asked_scales_ = 0;
};

// The inputs of a pass: column lane / 4, for the warp's tiles.
template <class Shape>
class PassInputs {
 public:
  __device__ __forceinline__ void load(const LinearCall& call, const ExpertPasses& passes,
                                       const ExpertPass& pass, int part) {
    const int column = max(min(to_int(threadIdx.x) % kWarp / 4, pass.count - 1), 0);
    const Bf16* const row = static_cast<const Bf16*>(call.x) + call.x_offset(passes.row(pass.first + column));
#pragma unroll
    for (int i = 0; i < Shape::kWarpTiles; ++i)
      tiles_[i].load_tile(row + (part + i * Shape::kSharing) * kNibbleValues);
  }
  __device__ __forceinline__ const HeldInputs<1, 1>& operator[](int tile) const {
    return tiles_[tile];
  }

 private:
  HeldInputs<1, 1> tiles_[Shape::kWarpTiles];
};

// Writes an item's results: those of the warps that share its rows are added in shared memory.
template <class Shape>
class ItemResults {
 public:
  static constexpr int kPartFloats = kTileColumns * kPartialPitch;
  static constexpr int kBytes = Shape::kSharing == 1 ? 0 : 2 * Shape::kParts * kPartFloats * 4;  // per unit

  __device__ __forceinline__ ItemResults(const LinearCall& call, const ExpertPlan& plan, std::byte* shared)
      : call_(call),
        partials_(reinterpret_cast<float*>(shared + plan.partials + threadIdx.x / kUnitThreads * kBytes)) {}

  __device__ __forceinline__ void begin_pass(const ExpertPasses& passes, const ExpertPass& pass) {
    count_ = pass.count;
#pragma unroll
    for (int i = 0; i < kColumns; ++i)
      if (column(i) < pass.count) at_[i] = call_.out_offset(passes.row(pass.first + column(i)));
  }
  // `n` is the item's first output. If warps share the rows, this contains a barrier of the unit.
  __device__ __forceinline__ void write(const float (&total)[Shape::kSets][1][4], int n) {
    const int lane = to_int(threadIdx.x) % kWarp;
    if constexpr (Shape::kSharing == 1) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (Shape::kOperands == 2 && i >= 2) break;
        float value = 0;
        float up = 0;
#pragma unroll
        for (int s = 0; s < Shape::kSets; ++s) value += total[s][0][i];
        if constexpr (Shape::kOperands == 2) {
#pragma unroll
          for (int s = 0; s < Shape::kSets; ++s) up += total[s][0][i + 2];
          value = value / (1.0f + expf(-value)) * up;
        }
        if (lane % 4 * 2 + i % 2 < count_) store(at_[i % 2] + n + lane / 4 + i / 2 * 8, value);
      }
      __syncwarp();
    } else {
      const int part = to_int(threadIdx.x) / kWarp % Shape::kSharing;
      float* const to = partials_ + buffer_ * Shape::kParts * kPartFloats;
#pragma unroll
      for (int s = 0; s < Shape::kSets; ++s)
        leave_partials<1>(total[s], to + (part + s * Shape::kSharing) * kPartFloats);
      unit_barrier<Shape>(to_int(threadIdx.x) / kUnitThreads);
      const int row = to_int(threadIdx.x) % kUnitThreads % Shape::kOutputs;
#pragma unroll
      for (int i = 0; i < kColumns; ++i) {
        if (column(i) >= count_) break;
        const float* from = to + column(i) * kPartialPitch + row;
        float value = 0;
#pragma unroll
        for (int p = 0; p < Shape::kParts; ++p) value += from[p * kPartFloats];
        if constexpr (Shape::kOperands == 2) {
          float up = 0;
#pragma unroll
          for (int p = 0; p < Shape::kParts; ++p) up += from[p * kPartFloats + Shape::kOutputs];
          value = value / (1.0f + expf(-value)) * up;
        }
        store(at_[i] + n + row, value);
      }
      buffer_ ^= 1;  // a warp that is an item ahead writes to the other buffer
    }
  }

 private:
  static constexpr int kUnitThreads = Shape::kSharing * kWarp;
  // Columns per thread: those of its accumulators, or those that it adds up.
  static constexpr int kColumns =
      Shape::kSharing == 1 ? 2 : (kTileColumns * Shape::kOutputs + kUnitThreads - 1) / kUnitThreads;

  __device__ __forceinline__ void store(long long at, float value) const {
    static_cast<Bf16*>(call_.out)[at] = from_float<Bf16>(value);
  }
  __device__ static __forceinline__ int column(int i) {
    if constexpr (Shape::kSharing == 1) return to_int(threadIdx.x) % 4 * 2 + i;
    return to_int(threadIdx.x) % kUnitThreads / Shape::kOutputs + i * (kUnitThreads / Shape::kOutputs);
  }

  const LinearCall& call_;
  float* partials_;
  long long at_[kColumns] = {};
  int count_ = 0;
  int buffer_ = 0;
};

template <class Shape, int kDepth, int kBlocks>
__global__ void __launch_bounds__(kExpertWarps* kWarp, kBlocks)
    expert_decode(const __grid_constant__ LinearCall call, const __grid_constant__ ExpertPlan plan,
                  Fault* fault) {
  extern __shared__ __align__(16) std::byte shared[];
  wait_for_inputs();
  allow_successor();
  ExpertPasses passes(call, plan, shared);
  const int items = passes.find(fault) * plan.rounds;
  const int unit = to_int(threadIdx.x) / (Shape::kSharing * kWarp) * to_int(gridDim.x) + to_int(blockIdx.x);
  const int units = Shape::kUnits * to_int(gridDim.x);
  ItemWalk walk(items, unit, units, plan.rounds);
  ExpertRing<Shape, kDepth> ring(call, plan, passes, walk, shared);
  PassInputs<Shape> inputs;
  ItemResults<Shape> results(call, plan, shared);
  const int part = to_int(threadIdx.x) / kWarp % Shape::kSharing;
  ring.begin_item();  // wait for the first scales
  unit_barrier<Shape>(to_int(threadIdx.x) / (Shape::kSharing * kWarp));
  bool next_pass = true;
#pragma unroll 1
  while (walk.left > 0) {
    if (next_pass) {
      inputs.load(call, passes, passes[walk.pass], part);
      results.begin_pass(passes, passes[walk.pass]);
    }
    ring.begin_item();
    float total[Shape::kSets][1][4] = {};
#pragma unroll
    for (int tile = 0; tile < Shape::kWarpTiles; ++tile)
      multiply_tile_of(ring[tile], inputs[tile], 0, 0, total[tile % Shape::kSets]);
    ring.end_item();
    results.write(total, walk.round * Shape::kOutputs);
    next_pass = walk.advance(plan.rounds);
  }
}

constexpr int kDepth = 2;            // items prefetched
constexpr int kResidentBlocks = 3;   // per multiprocessor, by the kernel's registers
constexpr long long kMost = 0xffff;  // experts, and rows

// Calls `run` with the shape for this call, if one is compiled; the parts of K are those of nibble_plan().
template <class Run>
void with_shape(const LinearCall& call, const Run& run) {
  const long long tiles = call.inputs / kNibbleValues;
  if (call.operands == 2 && tiles == 8)
    run(ExpertShape<2, 4, 1, 2>{});
  else if (call.operands == 1 && tiles == 2)
    run(ExpertShape<1, 1, 2, 1>{});
  else if (call.operands == 1 && tiles == 4)
    run(ExpertShape<1, 2, 2, 1>{});
}

template <class Shape>
ExpertPlan lay_out(const LinearCall& call) {
  using Ring = ExpertRing<Shape, kDepth>;
  ExpertPlan plan;
  int end = 0;
  const auto place = [&](long long bytes) {
    const int at = end;
    end += to_int(divide_up<long long>(bytes, 16) * 16);
    return at;
  };
  plan.rows = to_int(call.tokens * call.slots);
  plan.rounds = to_int(call.outputs) / Shape::kOutputs;
  place(kExpertWarps * Ring::kBytes);
  plan.scales = place(Shape::kUnits * Ring::kScaleSlots * Shape::kScaleBytes);
  plan.partials = place(Shape::kUnits * ItemResults<Shape>::kBytes);
  plan.numbers = place(kBlockNumbers * 4);
  plan.starts = place(kExpertWarps * call.matrices * 2);
  const long long passes = std::min<long long>(call.matrices, plan.rows) + plan.rows / kTileColumns;
  plan.passes = place(passes * to_int(sizeof(ExpertPass)));
  plan.ids = place(plan.rows * 2);
  plan.ranks = place(plan.rows * 2);
  plan.sorted = place(plan.rows * 2);
  plan.shared_bytes = end;
  return plan;
}

}  // namespace

std::optional<ExpertPlan> expert_plan(const LinearCall& call, const DeviceInfo& device) {
  constexpr int kReserved = 1024;  // of shared memory per block
  if (call.experts == nullptr || call.tokens == 1 || call.out_type != ops::DType::bf16 ||
      call.matrices >= kMost || call.tokens * call.slots >= kMost || call.outputs % kTileRows != 0 ||
      !takes_nibbles(call))
    return std::nullopt;
  for (int i = 0; i < call.operands; ++i)
    if (call.w[i].scale_alignment != 16) return std::nullopt;
  std::optional<ExpertPlan> plan;
  with_shape(call, [&]<class Shape>(Shape) { plan = lay_out<Shape>(call); });
  if (!plan) return plan;
  // With very many rows, their lists would leave room for one block per multiprocessor only.
  const int fitting = (to_int(device.shared_bytes_per_block) + kReserved) / (plan->shared_bytes + kReserved);
  if (fitting < 2) return std::nullopt;
  plan->blocks = device.multiprocessors * std::min(fitting, kResidentBlocks);
  return plan;
}

void launch_experts(Context& context, const LinearCall& call, const ExpertPlan& plan) {
  const Grid grid{dim3(to_unsigned(plan.blocks)), dim3(kExpertWarps * kWarp), to_size(plan.shared_bytes)};
  with_shape(call, [&]<class Shape>(Shape) {
    launch(context, expert_decode<Shape, kDepth, kResidentBlocks>, grid, call, plan, context.fault());
  });
}

}  // namespace sluice::backend::cuda::linear::decode
