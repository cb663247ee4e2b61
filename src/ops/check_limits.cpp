// What each op demands beyond its shapes.
#include <cmath>

#include "ops/limits.h"

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

void KvAppend::check_limits(const Dims& dims, bool host_memory) const {
  check_rows(*this, dims["T"], dims["S"], host_memory);
}

void Attention::check_limits(const Dims& dims, bool host_memory) const {
  check_divides(kName, "H", dims["H"], "KH", dims["KH"]);
  check_window(kName, window);
  check_finite(kName, "scale", scale);
  check_rows(*this, dims["T"], dims["S"], host_memory);
}

void Hadamard::check_limits(const Dims& dims, bool) const {
  check_rotation_width(kName, dims["D"]);
}

void TurboquantEncode::check_limits(const Dims& dims, bool) const {
  check_turboquant_bits(kName, "bits", bits);
  check_rotation_width(kName, dims["D"]);
}

void TurboquantDecode::check_limits(const Dims& dims, bool) const {
  check_turboquant_bits(kName, "bits", bits);
  check_rotation_width(kName, dims["D"]);
}

void TurboquantAppend::check_limits(const Dims& dims, bool host_memory) const {
  check_turboquant_bits(kName, "k_bits", k_bits);
  check_turboquant_bits(kName, "v_bits", v_bits);
  check_rotation_width(kName, dims["D"]);
  if (seq_starts.present() && !host_memory) return;
  const Sequences sequences(*this, dims["T"]);
  for (std::int64_t b = 0; b < sequences.count(); ++b)
    if (Sequences::value(start, b) < 0)
      fail(ErrorKind::input, "{}: 'start' is {} for sequence {}, it must not be negative", kName,
           Sequences::value(start, b), b);
}

void TurboquantAttention::check_limits(const Dims& dims, bool host_memory) const {
  check_turboquant_bits(kName, "k_bits", k_bits);
  check_turboquant_bits(kName, "v_bits", v_bits);
  check_rotation_width(kName, dims["D"]);
  check_divides(kName, "H", dims["H"], "KH", dims["KH"]);
  check_window(kName, window);
  check_finite(kName, "scale", scale);
  if (seq_starts.present() && !host_memory) return;
  const Sequences sequences(*this, dims["T"]);
  for (std::int64_t b = 0; b < sequences.count(); ++b) {
    const std::int64_t rows = Sequences::value(length, b);
    const std::int64_t oldest = Sequences::value(ring_start, b);
    if (rows < sequences[b].tokens() || rows > dims["S"])
      fail(ErrorKind::input,
           "{}: 'length' is {} for {} tokens of sequence {}, allowed is that number up to S = {}", kName,
           rows, sequences[b].tokens(), b, dims["S"]);
    if (oldest < 0 || oldest >= dims["S"] || (oldest != 0 && rows != dims["S"]))
      fail(ErrorKind::input,
           "{}: 'ring_start' is {} with length {} of S = {}; it lies in [0,S) and is 0 unless the ring "
           "is full",
           kName, oldest, rows, dims["S"]);
  }
}

void DeltaRule::check_limits(const Dims& dims, bool) const {
  check_divides(kName, "Hv", dims["Hv"], "Hk", dims["Hk"]);
  for (const std::string_view width : {"Dk", "Dv"})
    if (dims[width] % 32 != 0 || dims[width] > 256)
      fail(ErrorKind::input, "{}: {} is {}, allowed is a multiple of 32 up to 256", kName, width,
           dims[width]);
}

void DeltaKkt::check_limits(const Dims& dims, bool) const {
  check_divides(kName, "H", dims["H"], "Hg", dims["Hg"]);
}

namespace {

void check_choices(std::string_view op, std::int64_t k, std::int64_t experts) {
  if (k < 1 || k > experts)
    fail(ErrorKind::input, "{}: attribute 'k' is {}, allowed is 1 to {}", op, k, experts);
}

float element(const ConstView& view, std::int64_t at) {
  if (view.dtype == DType::f32) return static_cast<const float*>(view.data)[at];
  if (view.dtype == DType::bf16) return to_float(static_cast<const BFloat16*>(view.data)[at]);
  return to_float(static_cast<const Float16*>(view.data)[at]);
}

void check_no_nan(std::string_view op, const ConstView& logits) {
  for (std::int64_t t = 0; t < logits.dim(0); ++t)
    for (std::int64_t e = 0; e < logits.dim(1); ++e)
      if (std::isnan(element(logits, t * logits.strides[0] + e)))
        fail(ErrorKind::input, "{}: field 'logits' is NaN at [{},{}]", op, t, e);
}

void check_bias(std::string_view op, const ConstView& bias) {
  for (std::int64_t e = 0; e < bias.dim(0); ++e)
    if (!std::isfinite(element(bias, e)))
      fail(ErrorKind::input, "{}: field 'bias' is {} at [{}], it must be finite", op, element(bias, e), e);
}

}  // namespace

void RouteSoftmax::check_limits(const Dims& dims, bool host_memory) const {
  check_choices(kName, k, dims["E"]);
  if (host_memory) check_no_nan(kName, logits);
}

void Sample::check_limits(const Dims&, bool host_memory) const {
  const auto refuse = [](std::string_view attribute, double given, std::string_view allowed) {
    fail(ErrorKind::input, "{}: attribute '{}' is {}, allowed is {}", kName, attribute, given, allowed);
  };
  if (!(temperature >= 0) || !std::isfinite(temperature)) refuse("temperature", temperature, "0 or more");
  if (top_k < 0) refuse("top_k", static_cast<double>(top_k), "0 (all) or more");
  if (!(top_p > 0 && top_p <= 1)) refuse("top_p", top_p, "above 0, at most 1");
  if (!(min_p >= 0 && min_p <= 1)) refuse("min_p", min_p, "0 to 1");
  if (host_memory) check_no_nan(kName, logits);
}

void RouteSigmoid::check_limits(const Dims& dims, bool host_memory) const {
  check_divides(kName, "E", dims["E"], "groups", groups);
  if (top_groups < 1 || top_groups > groups)
    fail(ErrorKind::input, "{}: attribute 'top_groups' is {}, allowed is 1 to groups = {}", kName, top_groups,
         groups);
  check_choices(kName, k, dims["E"] / groups * top_groups);
  check_finite(kName, "scale", scale);
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

void MlaSplit::check_limits(const Dims& dims, bool) const {
  if (nope < 1 || rope < 1 || dims["rank"] < 1)
    fail(ErrorKind::input, "{}: nope = {}, rope = {} and rank = {} must each be at least 1", kName, nope,
         rope, dims["rank"]);
}

void MlaAppend::check_limits(const Dims& dims, bool host_memory) const {
  check_rows(*this, dims["T"], dims["S"], host_memory);
}

void MlaAbsorbQ::check_limits(const Dims&, bool) const {
  if (kv_b.present() == embed_q.present())
    fail(ErrorKind::input, "{}: exactly one of 'kv_b' and 'embed_q' must be given", kName);
  if (v < 0 || (kv_b.present() && v < 1))
    fail(ErrorKind::input, "{}: attribute 'v' is {}, with 'kv_b' it must be at least 1", kName, v);
}

void MlaAttention::check_limits(const Dims& dims, bool host_memory) const {
  check_finite(kName, "scale", scale);
  check_rows(*this, dims["T"], dims["S"], host_memory);
}

void MlaProjectOut::check_limits(const Dims&, bool) const {
  if (kv_b.present() == unembed_out.present())
    fail(ErrorKind::input, "{}: exactly one of 'kv_b' and 'unembed_out' must be given", kName);
  if (nope < 0 || (kv_b.present() && nope < 1))
    fail(ErrorKind::input, "{}: attribute 'nope' is {}, with 'kv_b' it must be at least 1", kName, nope);
}

}  // namespace sluice::ops
