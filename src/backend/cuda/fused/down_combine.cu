// The experts' last product and the sum over experts as one launch:
//
//   y[j] = x[j] w[experts[j]]T;  out = residual + sum_j weights[j] * y[j] + sigmoid(gate) * y[k]
//
// A block computes 16 rows for all of the token's experts; each warp those of one expert and part of K, with
// all its weight loads in flight at once. The loads start before the inputs exist: the launch in between,
// which computes the inputs, started when the choice of experts was complete. The bits are those of the two
// ops.
#include "backend/cuda/device/activation.cuh"
#include "backend/cuda/fused/recorded.h"
#include "backend/cuda/fused/row.h"
#include "backend/cuda/linear/decode/int4_inputs.cuh"
#include "backend/cuda/linear/decode/int4_product.cuh"

namespace sluice::backend::cuda::fused {

namespace {

using namespace linear::decode;
using linear::LinearCall;

constexpr int kMostWarps = 32;

struct Mixture {
  const Bf16* residual;
  Bf16* out;
  const float* weights;
  Parameter shared_gate;
  int chosen;   // k
  bool shared;  // slot k is the shared expert's
  // Bytes from the start of shared memory.
  int results;  // [slots][16], rounded as they would be stored
  int factors;  // [slots]
};

template <int kDepth>
__global__ void __launch_bounds__(kMostWarps* kWarp, 1)
    down_combine_kernel(const __grid_constant__ LinearCall call, const __grid_constant__ NibblePlan plan,
                        const __grid_constant__ Mixture mixture, Fault* fault) {
  extern __shared__ __align__(16) std::byte shared[];
  const int thread = threadIdx.x;
  const int lane = thread % kWarp;
  const int warp = thread / kWarp;
  const int parts = 1 << plan.parts_log2;
  const int slot = warp >> plan.parts_log2;
  const int part = warp & (parts - 1);
  const int expert = __ldcg(call.experts + slot);
  const bool exists = expert >= 0 && expert < call.matrices;
  WeightRing<kDepth> ring(call, plan, shared, TileWalk::Place{part, 0, 0});
  if (exists) ring.begin(expert);
  wait_for_inputs();
  allow_successor();
  if (!exists && lane == 0) report(fault, FaultKind::expert_id, expert, call.matrices);
  auto* const partials = reinterpret_cast<float*>(shared + plan.partials);
  auto* const results = reinterpret_cast<float*>(shared + mixture.results);
  auto* const factors = reinterpret_cast<float*>(shared + mixture.factors);
  const int n = to_int(blockIdx.x) * kTileRows + thread % kTileRows;
  const bool inside = n < call.outputs;
  const float residual = thread < kTileRows && inside ? to_float(mixture.residual[n]) : 0.0f;
  if (thread < mixture.chosen)
    factors[thread] = mixture.weights[thread];
  else if (thread == mixture.chosen)
    factors[thread] = mixture.shared_gate.present() ? sigmoid(mixture.shared_gate[0]) : 1.0f;
  float total[1][4] = {};
  const Bf16* const x = static_cast<const Bf16*>(call.x) + slot * call.x_slot;
  if (exists) {
    StagedInputs inputs;
    inputs.load_part(plan, x, slot, part, parts, shared);
#pragma unroll 1
    for (int tile = part; tile < plan.tiles; tile += parts) multiply_tile_of(ring, inputs, tile, 0, total);
  }
  if (lane % 4 == 0) {
    partials[warp * kTileRows + lane / 4] = total[0][0];
    partials[warp * kTileRows + lane / 4 + 8] = total[0][2];
  }
  __syncthreads();
  if (thread < to_int(call.slots) * kTileRows) {
    const float* from = partials + (thread / kTileRows << plan.parts_log2) * kTileRows + thread % kTileRows;
    float sum = 0;
    for (int p = 0; p < parts; ++p) sum += from[p * kTileRows];
    const Bf16 stored = from_float<Bf16>(sum);
    if (inside) static_cast<Bf16*>(call.out)[thread / kTileRows * call.out_slot + n] = stored;
    results[thread] = to_float(stored);
  }
  __syncthreads();
  if (thread >= kTileRows || !inside) return;
  float sum = residual;
  for (int j = 0; j < mixture.chosen; ++j) sum += factors[j] * results[j * kTileRows + thread];
  if (mixture.shared) sum += factors[mixture.chosen] * results[mixture.chosen * kTileRows + thread];
  mixture.out[n] = from_float<Bf16>(sum);
}

// Whether the mixture sums this product's output: [1,k,N], followed by the shared expert's row.
bool sums_up(const ops::MoeCombine& sum, const ops::ExpertMatmul& product) {
  const std::int64_t slots = product.out.dim(1);
  const std::int64_t width = product.out.dim(2);
  const std::int64_t chosen = sum.expert_out.dim(1);
  const auto* const first = static_cast<const std::byte*>(product.out.data);
  if (!is_row(sum.residual) || !is_row(sum.out) || product.out.dim(0) != 1 ||
      product.out.dtype != ops::DType::bf16 || sum.expert_out.data != product.out.data ||
      sum.expert_out.dtype != ops::DType::bf16 || sum.expert_out.strides[1] != product.out.strides[1] ||
      product.out.strides[2] != 1 || sum.residual.dim(1) != width)
    return false;
  if (!sum.shared_out.present()) return chosen == slots;
  return chosen + 1 == slots && sum.shared_out.dtype == ops::DType::bf16 &&
         sum.shared_out.data == first + chosen * product.out.strides[1] * 2;
}

// One round of 16 rows per block, with a warp for each slot and part of K.
bool lay_out(const LinearCall& call, NibblePlan& plan, Mixture& mixture) {
  const int warps = to_int(call.slots) << plan.parts_log2;
  if (warps > kMostWarps) return false;
  const int depth = plan.own_tiles == 1 ? 1 : 2;
  plan.row_tiles_log2 = 0;
  plan.rounds = to_int(divide_up<long long>(call.outputs, kTileRows));
  // Inputs are at 0, one column per slot.
  const int slots = to_int(call.slots);
  plan.sums = slots * plan.input_pitch;
  plan.factors = plan.sums + slots * plan.sum_pitch;
  plan.ring = divide_up(plan.factors + slots * plan.tiles * 4, 16) * 16;
  plan.partials = plan.ring + warps * depth * kRingTileBytes;
  mixture.results = plan.partials + warps * kTileRows * 4;
  mixture.factors = mixture.results + slots * kTileRows * 4;
  plan.shared_bytes = mixture.factors + (slots + 1) * 4;
  plan.grid = dim3(to_unsigned(plan.rounds));
  return true;
}

}  // namespace

std::size_t down_combine(Context& context, const Place& place) {
  const auto* before = place.next<ops::ExpertGateUpSwiglu>(-1);
  const auto* product = place.next<ops::ExpertMatmul>();
  const auto* sum = place.next<ops::MoeCombine>(1);
  if (before == nullptr || product == nullptr || sum == nullptr) return 0;
  if (before->experts.data != product->experts.data || before->out.data != product->x.data ||
      !product->w.separate.empty() || !sums_up(*sum, *product) || !context.decode_class(1))
    return 0;
  LinearCall call = linear::linear_call(product->x, product->experts, product->w.shape()[0], product->out);
  call.w[0] = linear::matrices_of(context, product->w);
  auto plan = nibble_plan(call, context.device());
  Mixture mixture{static_cast<const Bf16*>(sum->residual.data),
                  static_cast<Bf16*>(sum->out.data),
                  static_cast<const float*>(sum->weights.data),
                  {sum->shared_gate.data, sum->shared_gate.dtype},
                  to_int(sum->weights.dim(1)),
                  sum->shared_out.present(),
                  0,
                  0};
  if (!plan || !lay_out(call, *plan, mixture) ||
      to_size(plan->shared_bytes) > context.device().shared_bytes_per_block)
    return 0;
  const auto threads = to_unsigned(to_int(call.slots) * kWarp << plan->parts_log2);
  const Grid grid{plan->grid, dim3(threads), to_size(plan->shared_bytes)};
  launch(context, plan->own_tiles == 1 ? down_combine_kernel<1> : down_combine_kernel<2>, grid, call, *plan,
         mixture, context.fault());
  return 2;
}

}  // namespace sluice::backend::cuda::fused
