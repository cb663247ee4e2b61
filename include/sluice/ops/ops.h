// Every op of the library.
#pragma once

#include <variant>

#include "sluice/ops/attention/attention.h"
#include "sluice/ops/attention/mla_attention.h"
#include "sluice/ops/attention/mla_turboquant_attention.h"
#include "sluice/ops/attention/turboquant_attention.h"
#include "sluice/ops/cache/hadamard.h"
#include "sluice/ops/cache/kv_append.h"
#include "sluice/ops/cache/mla_append.h"
#include "sluice/ops/cache/mla_turboquant_append.h"
#include "sluice/ops/cache/qk_norm_rope_append.h"
#include "sluice/ops/cache/qk_norm_rope_turboquant_append.h"
#include "sluice/ops/cache/turboquant_append.h"
#include "sluice/ops/cache/turboquant_decode.h"
#include "sluice/ops/cache/turboquant_encode.h"
#include "sluice/ops/delta/causal_conv1d.h"
#include "sluice/ops/delta/delta_gates.h"
#include "sluice/ops/delta/delta_kkt.h"
#include "sluice/ops/delta/delta_rule.h"
#include "sluice/ops/delta/delta_step.h"
#include "sluice/ops/linear/embed.h"
#include "sluice/ops/linear/expert_gate_up_swiglu.h"
#include "sluice/ops/linear/expert_matmul.h"
#include "sluice/ops/linear/gate_up_swiglu.h"
#include "sluice/ops/linear/matmul.h"
#include "sluice/ops/linear/mla_absorb_q.h"
#include "sluice/ops/linear/mla_project_out.h"
#include "sluice/ops/pointwise/add.h"
#include "sluice/ops/pointwise/add_rms_norm.h"
#include "sluice/ops/pointwise/gated_rms_norm.h"
#include "sluice/ops/pointwise/mla_split.h"
#include "sluice/ops/pointwise/qk_l2_norm.h"
#include "sluice/ops/pointwise/qk_norm_rope.h"
#include "sluice/ops/pointwise/rms_norm.h"
#include "sluice/ops/pointwise/rope.h"
#include "sluice/ops/pointwise/sigmoid_gate.h"
#include "sluice/ops/pointwise/split_q_gate.h"
#include "sluice/ops/pointwise/swiglu.h"
#include "sluice/ops/routing/moe_combine.h"
#include "sluice/ops/routing/moe_scatter_add.h"
#include "sluice/ops/routing/route_sigmoid.h"
#include "sluice/ops/routing/route_softmax.h"
#include "sluice/ops/routing/sample.h"

namespace sluice::ops {

template <class... Ops>
struct OpList {
  static constexpr std::size_t kSize = sizeof...(Ops);
  // Any one of the ops, by reference.
  using Reference = std::variant<const Ops*...>;
  // Calls f.template operator()<Op>() for every op, in order.
  template <class F>
  static constexpr void for_each(F&& f) {
    (f.template operator()<Ops>(), ...);
  }
};

using AllOps =
    OpList<Embed, Matmul, ExpertMatmul, GateUpSwiglu, ExpertGateUpSwiglu, Swiglu, Add, SigmoidGate, RmsNorm,
           AddRmsNorm, GatedRmsNorm, QkL2Norm, Rope, QkNormRope, SplitQGate, KvAppend, Attention, Hadamard,
           TurboquantEncode, TurboquantDecode, TurboquantAppend, TurboquantAttention, QkNormRopeAppend,
           QkNormRopeTurboquantAppend, CausalConv1d, DeltaGates, DeltaRule, DeltaStep, DeltaKkt, RouteSoftmax,
           RouteSigmoid, MoeCombine, MoeScatterAdd, MlaSplit, MlaAppend, MlaAbsorbQ, MlaAttention,
           MlaProjectOut, MlaTurboquantAppend, MlaTurboquantAttention, Sample>;
using AnyOp = AllOps::Reference;

// Throws sluice::Error unless the op's fields fit its contract; writes nothing. Rules on the contents of
// fields (an expert id, say) are applied where the fields are in host memory.
template <class Op>
void check(const Op& op, bool host_memory = true);

}  // namespace sluice::ops
