// A mixer's output projection, the residual addition, the norm, the router's product and its choice, as two
// launches: residual += x w'; then every block of the router's product normalises the residual itself, and
// the block that finishes last chooses from all logits.
#include "backend/cuda/fused/recorded.h"
#include "backend/cuda/fused/row.h"
#include "backend/cuda/linear/decode/kernel.cuh"
#include "backend/cuda/routing/choose_softmax.cuh"

namespace sluice::backend::cuda::fused {

namespace {

using namespace linear::decode;
using linear::LinearCall;
using linear::Storage;

constexpr int kHeldExperts = 8;  // per lane

// True in the block that arrives last, which then sees what the others wrote.
__device__ __forceinline__ bool comes_last(int* ticket) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(ticket, 1) == to_int(gridDim.x) - 1;
    if (last) *ticket = 0;
    __threadfence();
  }
  __syncthreads();
  return last;
}

__global__ void __launch_bounds__(kDecodeWarps* kWarp, 2)
    norm_route(const __grid_constant__ LinearCall call, const __grid_constant__ DecodePlan plan,
               const __grid_constant__ InputNorm norm, const __grid_constant__ routing::RouterCall route,
               int* ticket) {
  constexpr Storage S = Storage::affine8;
  extern __shared__ __align__(16) std::byte shared[];
  const int warp = to_int(threadIdx.x) / kWarp;
  auto* partials = reinterpret_cast<float*>(shared + plan.partials);
  RowList rows(call, plan, shared);
  WeightStream<S, 1> stream(call, plan, shared);
  stream.begin(0);
  const NormedRow row(norm);
  wait_for_inputs();
  allow_successor();
  rows.next();
  InputStage<S, 1>(call, plan, rows, 1, shared).fill(row);
  const Columns<S, 1> columns(plan, shared, 1);
  stream.wait();
  __syncthreads();
  const int biases = plan.rows_of_block() * plan.scale_pitch;  // after their scales
  const int scales = plan.scales + stream.row() * plan.scale_pitch;
  float total[1][4] = {};
#pragma unroll 1
  for (int step = stream.part(); step < plan.steps; step += plan.parts()) {
    unsigned words[2][Fragment<S>::kWords];
    stream.take(words);
    multiply_step<S, true, 1>(call, plan, columns, shared, {step, scales, biases, words}, total);
  }
  leave_partials<1>(plan, total, partials + warp * plan.partial_pitch);
  __syncthreads();
  write_round(call, plan, rows, 1, to_int(blockIdx.x), partials);
  if (comes_last(ticket) && warp == 0) routing::choose_held<float, kHeldExperts>(route, 0);
}

// The router's product as one round per block; nothing if another kernel would compute it.
std::optional<DecodePlan> router_plan(const LinearCall& call, const DeviceInfo& device) {
  if (call.w[0].storage != Storage::affine8 || call.w[0].scale_type != linear::ScaleType::bf16)
    return std::nullopt;
  const auto plan = decode_plan(call, device);
  const bool one_round = plan && to_int(plan->grid.x) == plan->rounds && plan->grid.y == 1;
  return one_round && plan->blocks == 1 && plan->whole_inputs ? plan : std::nullopt;
}

bool chooses_from(const ops::RouteSoftmax& route, const ops::Matmul& product) {
  return route.logits.data == product.out.data && route.logits.dtype == ops::DType::f32 &&
         route.logits.dim(1) <= product.out.dim(1) && route.logits.dim(1) <= kHeldExperts * kWarp &&
         route.k <= kWarp;
}

}  // namespace

std::size_t project_and_route(Context& context, const Place& place) {
  const auto* projection = place.next<ops::Matmul>();
  const auto* norm = place.next<ops::AddRmsNorm>(1);
  const auto* product = place.next<ops::Matmul>(2);
  const auto* route = place.next<ops::RouteSoftmax>(3);
  if (projection == nullptr || norm == nullptr || product == nullptr || route == nullptr) return 0;
  if (projection->out.data != norm->delta.data || !is_row(projection->out) || !is_row(norm->delta) ||
      product->x.data != norm->out.data || !normable(norm->residual, *norm, product->out) ||
      !chooses_from(*route, *product) || !context.decode_class(1))
    return 0;
  LinearCall first = linear::linear_call(projection->x, projection->out);
  first.w[0] = linear::matrices_of(projection->w);
  LinearCall second = linear::linear_call(product->x, product->out);
  second.w[0] = linear::matrices_of(product->w);
  const auto first_plan = nibble_plan(first, context.device());
  const auto second_plan = router_plan(second, context.device());
  if (!first_plan || !second_plan) return 0;
  launch_nibbles(context, first, *first_plan, norm->residual.data);
  const Grid grid{second_plan->grid, dim3(kDecodeWarps * kWarp),
                  to_size(second_plan->shared_bytes + kNormBytes)};
  launch(context, norm_route, grid, second, *second_plan,
         input_norm(norm->residual, *norm, second_plan->shared_bytes),
         routing::RouterCall(*route, {}, context.fault()), context.counters() + Context::kCounters - 1);
  return 4;
}

}  // namespace sluice::backend::cuda::fused
