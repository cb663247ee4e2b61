// Requirements of the delta ops beyond shapes.
#include "ops/limits/rules.h"
#include "sluice/ops/delta/causal_conv1d.h"
#include "sluice/ops/delta/delta_kkt.h"
#include "sluice/ops/delta/delta_rule.h"
#include "sluice/ops/delta/delta_step.h"

namespace sluice::ops {

namespace {

void check_state_widths(std::string_view op, const Dims& dims) {
  for (const std::string_view width : {"Dk", "Dv"})
    if (dims[width] % 32 != 0 || dims[width] > 256)
      fail(ErrorKind::input, "{}: {} is {}, allowed is a multiple of 32 up to 256", op, width, dims[width]);
}

}  // namespace

void DeltaStep::check_limits(const Dims& dims, bool) const {
  check_state_widths(kName, dims);
  check_finite_positive(kName, "qk_eps", qk_eps);
  check_finite_positive(kName, "eps", eps);
  const std::int64_t keys = dims["C"] - dims["Hv"] * dims["Dv"];
  if (keys <= 0 || keys % (2 * dims["Dk"]) != 0)
    fail(ErrorKind::input, "{}: field 'qkv' has {} channels, allowed is 2*Hk*{} + {} for a number Hk", kName,
         dims["C"], dims["Dk"], dims["Hv"] * dims["Dv"]);
  check_divides(kName, "Hv", dims["Hv"], "Hk", key_heads());
}

void CausalConv1d::check_limits(const Dims& dims, bool host_memory) const {
  check_saves(*this, dims["T"], host_memory);
}

void DeltaRule::check_limits(const Dims& dims, bool host_memory) const {
  check_saves(*this, dims["T"], host_memory);
  check_divides(kName, "Hv", dims["Hv"], "Hk", dims["Hk"]);
  check_state_widths(kName, dims);
  if (!host_memory) return;
  for (std::int64_t t = 0; t < g.dim(0); ++t)
    for (std::int64_t h = 0; h < g.dim(1); ++h) {
      const float decay = static_cast<const float*>(g.data)[t * g.strides[0] + h];
      if (!(decay <= 0))
        fail(ErrorKind::input, "{}: field 'g' is {} at [{},{}], allowed is at most 0, the log of a decay",
             kName, decay, t, h);
    }
}

void DeltaKkt::check_attributes() const {
  constexpr std::int64_t kMaxChunk = 65536;
  check_range(kName, "chunk", chunk, 1, kMaxChunk);
}

void DeltaKkt::check_limits(const Dims& dims, bool) const {
  check_divides(kName, "H", dims["H"], "Hg", dims["Hg"]);
}

}  // namespace sluice::ops
