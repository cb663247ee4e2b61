// The whole vocabulary: every op of the library.
#pragma once

#include <variant>

#include "sluice/ops/add.h"
#include "sluice/ops/add_rms_norm.h"
#include "sluice/ops/attention.h"
#include "sluice/ops/causal_conv1d.h"
#include "sluice/ops/delta_gates.h"
#include "sluice/ops/delta_kkt.h"
#include "sluice/ops/delta_rule.h"
#include "sluice/ops/delta_step.h"
#include "sluice/ops/embed.h"
#include "sluice/ops/expert_gate_up_swiglu.h"
#include "sluice/ops/expert_matmul.h"
#include "sluice/ops/gate_up_swiglu.h"
#include "sluice/ops/gated_rms_norm.h"
#include "sluice/ops/hadamard.h"
#include "sluice/ops/kv_append.h"
#include "sluice/ops/matmul.h"
#include "sluice/ops/mla_absorb_q.h"
#include "sluice/ops/mla_append.h"
#include "sluice/ops/mla_attention.h"
#include "sluice/ops/mla_project_out.h"
#include "sluice/ops/mla_split.h"
#include "sluice/ops/mla_turboquant_append.h"
#include "sluice/ops/mla_turboquant_attention.h"
#include "sluice/ops/moe_combine.h"
#include "sluice/ops/moe_scatter_add.h"
#include "sluice/ops/qk_l2_norm.h"
#include "sluice/ops/qk_norm_rope.h"
#include "sluice/ops/qk_norm_rope_append.h"
#include "sluice/ops/qk_norm_rope_turboquant_append.h"
#include "sluice/ops/rms_norm.h"
#include "sluice/ops/rope.h"
#include "sluice/ops/route_sigmoid.h"
#include "sluice/ops/route_softmax.h"
#include "sluice/ops/sample.h"
#include "sluice/ops/sigmoid_gate.h"
#include "sluice/ops/split_q_gate.h"
#include "sluice/ops/swiglu.h"
#include "sluice/ops/turboquant_append.h"
#include "sluice/ops/turboquant_attention.h"
#include "sluice/ops/turboquant_decode.h"
#include "sluice/ops/turboquant_encode.h"

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
