// The ops of a program, collected before they are launched so that neighbours can share a launch.
#pragma once

#include <span>
#include <variant>

#include "backend/cuda/runtime/context.h"
#include "sluice/ops/ops.h"

namespace sluice::backend::cuda::fused {

template <class List>
struct ValuesOf;
template <class... Ops>
struct ValuesOf<ops::OpList<Ops...>> {
  using Type = std::variant<Ops...>;
};

struct RecordedOp {
  ValuesOf<ops::AllOps>::Type op;
  ops::Phase phase = ops::Phase::automatic;
};

// Whether an op may be launched after the call returns: a list of separate experts may not exist any more.
template <class Op>
bool can_wait(const Op& op) {
  if constexpr (requires { op.gate_w.separate; })
    return op.gate_w.separate.empty() && op.up_w.separate.empty();
  else if constexpr (requires { op.w.separate; })
    return op.w.separate.empty();
  else
    return true;
}

// Launches them in order; the results are bit for bit those of the ops one by one.
void run_all(Context& context, std::span<const RecordedOp> program);

// A position in a program, from which patterns look forwards and backwards.
class Place {
 public:
  Place(std::span<const RecordedOp> program, std::size_t at) : program_(program), at_(at) {}

  // The op at this distance; null if there is none or it is of another kind.
  template <class Op>
  const Op* next(std::ptrdiff_t distance = 0) const {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(at_) + distance;
    if (at < 0 || at >= static_cast<std::ptrdiff_t>(program_.size())) return nullptr;
    return std::get_if<Op>(&program_[static_cast<std::size_t>(at)].op);
  }

 private:
  std::span<const RecordedOp> program_;
  std::size_t at_;
};

// The patterns. Each one launches the ops that begin at a place, if they match, and returns their number,
// otherwise 0. They are for one token, where launches dominate the time.

// matmul, add_rms_norm, matmul, route_softmax: two launches.
std::size_t project_and_route(Context& context, const Place& place);
// rms_norm, matmul.
std::size_t norm_project(Context& context, const Place& place);
// expert_matmul, moe_combine, after the expert_gate_up_swiglu of the same experts.
std::size_t down_combine(Context& context, const Place& place);
// delta_step after a matmul.
std::size_t early_states(Context& context, const Place& place);

}  // namespace sluice::backend::cuda::fused
