// Requirements of products with weights beyond shapes.
#include "ops/limits/rules.h"
#include "sluice/ops/linear/embed.h"
#include "sluice/ops/linear/expert_gate_up_swiglu.h"
#include "sluice/ops/linear/expert_matmul.h"
#include "sluice/ops/linear/mla_absorb_q.h"
#include "sluice/ops/linear/mla_project_out.h"

namespace sluice::ops {

void Embed::check_limits(const Dims& dims, bool host_memory) const {
  if (host_memory) check_ids(kName, "ids", ids, dims["V"]);
}

void ExpertMatmul::check_limits(const Dims& dims, bool host_memory) const {
  if (host_memory) check_ids(kName, "experts", experts, dims["E"]);
}

void ExpertGateUpSwiglu::check_limits(const Dims& dims, bool host_memory) const {
  if (host_memory) check_ids(kName, "experts", experts, dims["E"]);
}

void MlaAbsorbQ::check_attributes() const {
  check_one_of(kName, "kv_b", kv_b, "embed_q", embed_q);
  check_range(kName, "v", v, kv_b.present() ? 1 : 0, kMaxWidth);
}

void MlaProjectOut::check_attributes() const {
  check_one_of(kName, "kv_b", kv_b, "unembed_out", unembed_out);
  check_range(kName, "nope", nope, kv_b.present() ? 1 : 0, kMaxWidth);
}

}  // namespace sluice::ops
