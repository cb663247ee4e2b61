// What each op demands beyond its shapes.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ops/limits.h"
#include "sluice/ops/ops.h"
#include "tensor/element.h"

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

namespace {

template <class Op>
void check_norm_rope(const Op& op, const Dims& dims) {
  if (2 * dims["M"] > dims["D"])
    fail(ErrorKind::input, "{}: field 'inv_freq' has {} frequencies, q and k have only D = {} channels",
         Op::kName, dims["M"], dims["D"]);
  check_finite_positive(Op::kName, "eps", op.eps);
  check_finite(Op::kName, "mscale", op.mscale);
}

// A ring has no end, but pages are no ring.
template <class Op>
void check_ring(const Op& op, const Dims& dims, bool host_memory) {
  check_rotation_width(Op::kName, dims["D"]);
  if (op.page_table.present()) return check_written_rows(op, dims, host_memory);
  if (op.seq_starts.present() && !host_memory) return;
  const Sequences sequences(op, dims["T"]);
  for (std::int64_t b = 0; b < sequences.count(); ++b)
    if (Sequences::value(op.start, b) < 0)
      fail(ErrorKind::input, "{}: 'start' is {} for sequence {}, it must not be negative", Op::kName,
           Sequences::value(op.start, b), b);
}

}  // namespace

void QkNormRope::check_limits(const Dims& dims, bool) const {
  check_norm_rope(*this, dims);
}

void QkNormRopeAppend::check_limits(const Dims& dims, bool host_memory) const {
  check_norm_rope(*this, dims);
  check_written_rows(*this, dims, host_memory);
}

void QkNormRopeTurboquantAppend::check_attributes() const {
  check_cache_bits(kName, "k_bits", k_bits);
  check_cache_bits(kName, "v_bits", v_bits);
}

void QkNormRopeTurboquantAppend::check_limits(const Dims& dims, bool host_memory) const {
  check_norm_rope(*this, dims);
  check_ring(*this, dims, host_memory);
}

void KvAppend::check_limits(const Dims& dims, bool host_memory) const {
  check_written_rows(*this, dims, host_memory);
}

void Attention::check_limits(const Dims& dims, bool host_memory) const {
  check_divides(kName, "H", dims["H"], "KH", dims["KH"]);
  check_window(kName, window);
  check_finite(kName, "scale", scale);
  check_read_rows(*this, dims, host_memory, window);
}

void Hadamard::check_limits(const Dims& dims, bool) const {
  check_rotation_width(kName, dims["D"]);
}

void TurboquantEncode::check_attributes() const {
  check_turboquant_bits(kName, "bits", bits);
}

void TurboquantEncode::check_limits(const Dims& dims, bool) const {
  check_rotation_width(kName, dims["D"]);
}

void TurboquantDecode::check_attributes() const {
  check_turboquant_bits(kName, "bits", bits);
}

void TurboquantDecode::check_limits(const Dims& dims, bool) const {
  check_rotation_width(kName, dims["D"]);
}

void TurboquantAppend::check_attributes() const {
  check_cache_bits(kName, "k_bits", k_bits);
  check_cache_bits(kName, "v_bits", v_bits);
}

void TurboquantAppend::check_limits(const Dims& dims, bool host_memory) const {
  check_ring(*this, dims, host_memory);
}

void TurboquantAttention::check_attributes() const {
  check_cache_bits(kName, "k_bits", k_bits);
  check_cache_bits(kName, "v_bits", v_bits);
  check_window(kName, window);
  check_finite(kName, "scale", scale);
}

void TurboquantAttention::check_limits(const Dims& dims, bool host_memory) const {
  check_rotation_width(kName, dims["D"]);
  check_divides(kName, "H", dims["H"], "KH", dims["KH"]);
  if (k_new.present() != v_new.present())
    fail(ErrorKind::input, "{}: field '{}' is given without '{}'", kName, k_new.present() ? "k_new" : "v_new",
         k_new.present() ? "v_new" : "k_new");
  if (length.value != 0 && start.value != 0)
    fail(ErrorKind::input, "{}: both 'length' {} and 'start' {} are given, allowed is one of them", kName,
         length.value, start.value);
  if (length.per_sequence.present() && start.per_sequence.present())
    fail(ErrorKind::input, "{}: both fields 'length' and 'start' are given, allowed is one of them", kName);
  if (seq_starts.present() && !host_memory) return;
  const Sequences sequences(*this, dims["T"]);
  const bool contents = page_table.present() && host_memory;
  const std::int64_t capacity = cache_rows(dims);
  for (std::int64_t b = 0; b < sequences.count(); ++b) {
    const std::int64_t rows = sequences.length(*this, b);
    const std::int64_t tokens = sequences[b].tokens();
    const std::int64_t oldest = Sequences::value(ring_start, b);
    if (rows < tokens || rows > capacity)
      fail(ErrorKind::input,
           "{}: 'length' is {} for {} tokens of sequence {}, allowed is that number up to S = {}", kName,
           rows, tokens, b, capacity);
    if (page_table.present() && oldest != 0)
      fail(ErrorKind::input, "{}: 'ring_start' is {} with a page table, whose rows are no ring", kName,
           oldest);
    if (oldest < 0 || oldest >= capacity || (oldest != 0 && rows != capacity))
      fail(ErrorKind::input,
           "{}: 'ring_start' is {} with length {} of S = {}; it lies in [0,S) and is 0 unless the ring "
           "is full",
           kName, oldest, rows, capacity);
    if (!contents || tokens == 0) continue;
    const std::int64_t first = window > 0 ? std::max<std::int64_t>(0, rows - tokens + 1 - window) : 0;
    check_pages(kName, sequences.pages(sequences[b]), b, first, rows, dims);
  }
}

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

namespace {

// Bounds what only has to fit others, so that sums and products of sizes cannot overflow.
constexpr std::int64_t kMaxWidth = std::int64_t{1} << 20;

// The last dimension before shapes are checked; what has none is refused by them later.
std::int64_t last_dim(const ConstView& view) {
  return view.rank() > 0 ? view.shape.back() : kMaxWidth;
}

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

void MlaSplit::check_attributes() const {
  check_range(kName, "nope", nope, 1, last_dim(q_full) - 1);
  check_range(kName, "rope", rope, 1, std::min(last_dim(q_full), last_dim(kv_pre)) - 1);
}

void MlaAppend::check_limits(const Dims& dims, bool host_memory) const {
  check_written_rows(*this, dims, host_memory);
}

void MlaAbsorbQ::check_attributes() const {
  check_one_of(kName, "kv_b", kv_b, "embed_q", embed_q);
  check_range(kName, "v", v, kv_b.present() ? 1 : 0, kMaxWidth);
}

void MlaAttention::check_limits(const Dims& dims, bool host_memory) const {
  check_finite(kName, "scale", scale);
  check_read_rows(*this, dims, host_memory, 0);
}

void MlaTurboquantAppend::check_attributes() const {
  check_turboquant_bits(kName, "bits", bits);
}

void MlaTurboquantAppend::check_limits(const Dims& dims, bool host_memory) const {
  check_rotation_width(kName, dims["rank"]);
  check_written_rows(*this, dims, host_memory);
}

void MlaTurboquantAttention::check_attributes() const {
  check_turboquant_bits(kName, "bits", bits);
  check_finite(kName, "scale", scale);
}

void MlaTurboquantAttention::check_limits(const Dims& dims, bool host_memory) const {
  check_rotation_width(kName, dims["rank"]);
  check_read_rows(*this, dims, host_memory, 0);
}

void MlaProjectOut::check_attributes() const {
  check_one_of(kName, "kv_b", kv_b, "unembed_out", unembed_out);
  check_range(kName, "nope", nope, kv_b.present() ? 1 : 0, kMaxWidth);
}

}  // namespace sluice::ops
