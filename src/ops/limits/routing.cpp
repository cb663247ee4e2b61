// Requirements of the routing ops beyond shapes.
#include <cmath>

#include "ops/limits/rules.h"
#include "sluice/ops/routing/moe_combine.h"
#include "sluice/ops/routing/moe_scatter_add.h"
#include "sluice/ops/routing/route_sigmoid.h"
#include "sluice/ops/routing/route_softmax.h"
#include "tensor/element.h"

namespace sluice::ops {

namespace {

void check_bias(std::string_view op, const ConstView& bias) {
  for (std::int64_t e = 0; e < bias.dim(0); ++e) {
    const double value = load(bias.data, bias.dtype, e);
    if (!std::isfinite(value))
      fail(ErrorKind::input, "{}: field 'bias' is {} at [{}], it must be finite", op, value, e);
  }
}

}  // namespace

void RouteSoftmax::check_attributes() const {
  check_range(kName, "k", k, 1, last_dim(logits));
}

void RouteSoftmax::check_limits(const Dims&, bool host_memory) const {
  if (host_memory) check_no_nan(kName, logits);
}

void RouteSigmoid::check_attributes() const {
  const std::int64_t count = last_dim(logits);
  if (groups < 1 || count % groups != 0)
    fail(ErrorKind::input, "{}: attribute 'groups' is {}, allowed is a divisor of E = {}", kName, groups,
         count);
  check_range(kName, "top_groups", top_groups, 1, groups);
  check_range(kName, "k", k, 1, count / groups * top_groups);
  check_finite(kName, "scale", scale);
}

void RouteSigmoid::check_limits(const Dims&, bool host_memory) const {
  if (!host_memory) return;
  check_no_nan(kName, logits);
  check_bias(kName, bias);
}

void MoeCombine::check_limits(const Dims&, bool) const {
  if (shared_gate.present() && !shared_out.present())
    fail(ErrorKind::input, "{}: field 'shared_gate' is given without 'shared_out'", kName);
}

void MoeScatterAdd::check_limits(const Dims& dims, bool host_memory) const {
  if (host_memory) check_ids(kName, "token_idx", token_idx, dims["T"]);
}

}  // namespace sluice::ops
