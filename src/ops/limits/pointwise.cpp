// Requirements of the pointwise ops beyond shapes.
#include <algorithm>

#include "ops/limits/rules.h"
#include "sluice/ops/pointwise/add_rms_norm.h"
#include "sluice/ops/pointwise/gated_rms_norm.h"
#include "sluice/ops/pointwise/mla_split.h"
#include "sluice/ops/pointwise/qk_l2_norm.h"
#include "sluice/ops/pointwise/qk_norm_rope.h"
#include "sluice/ops/pointwise/rms_norm.h"
#include "sluice/ops/pointwise/rope.h"

namespace sluice::ops {

void RmsNorm::check_limits(const Dims&, bool) const {
  check_finite_positive(kName, "eps", eps);
}

void AddRmsNorm::check_limits(const Dims&, bool) const {
  check_finite_positive(kName, "eps", eps);
}

void GatedRmsNorm::check_limits(const Dims&, bool) const {
  check_finite_positive(kName, "eps", eps);
}

void QkL2Norm::check_limits(const Dims&, bool) const {
  check_finite_positive(kName, "eps", eps);
  check_finite(kName, "q_scale", q_scale);
  check_finite(kName, "k_scale", k_scale);
}

void Rope::check_limits(const Dims& dims, bool) const {
  if (2 * dims["M"] > dims["D"])
    fail(ErrorKind::input, "{}: field 'inv_freq' has {} frequencies, x has only D = {} channels", kName,
         dims["M"], dims["D"]);
  check_finite(kName, "mscale", mscale);
}

void QkNormRope::check_limits(const Dims& dims, bool) const {
  check_norm_rope(*this, dims);
}

void MlaSplit::check_attributes() const {
  check_range(kName, "nope", nope, 1, last_dim(q_full) - 1);
  check_range(kName, "rope", rope, 1, std::min(last_dim(q_full), last_dim(kv_pre)) - 1);
}

}  // namespace sluice::ops
