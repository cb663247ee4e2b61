// Requirements of the cache ops beyond shapes.
#include "ops/limits/rules.h"
#include "sluice/ops/cache/hadamard.h"
#include "sluice/ops/cache/kv_append.h"
#include "sluice/ops/cache/mla_append.h"
#include "sluice/ops/cache/mla_turboquant_append.h"
#include "sluice/ops/cache/qk_norm_rope_append.h"
#include "sluice/ops/cache/qk_norm_rope_turboquant_append.h"
#include "sluice/ops/cache/turboquant_append.h"
#include "sluice/ops/cache/turboquant_decode.h"
#include "sluice/ops/cache/turboquant_encode.h"

namespace sluice::ops {

namespace {

// A ring has no end; paged caches cannot be rings.
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

void MlaAppend::check_limits(const Dims& dims, bool host_memory) const {
  check_written_rows(*this, dims, host_memory);
}

void MlaTurboquantAppend::check_attributes() const {
  check_turboquant_bits(kName, "bits", bits);
}

void MlaTurboquantAppend::check_limits(const Dims& dims, bool host_memory) const {
  check_rotation_width(kName, dims["rank"]);
  check_written_rows(*this, dims, host_memory);
}

}  // namespace sluice::ops
