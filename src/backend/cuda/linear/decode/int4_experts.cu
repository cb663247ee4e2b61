#include "backend/cuda/linear/decode/int4_experts.cuh"

#include <algorithm>

namespace sluice::backend::cuda::linear::decode {

namespace {

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
