// Requirements of the attention ops beyond shapes.
#include <algorithm>

#include "ops/limits/rules.h"
#include "sluice/ops/attention/attention.h"
#include "sluice/ops/attention/mla_attention.h"
#include "sluice/ops/attention/mla_turboquant_attention.h"
#include "sluice/ops/attention/turboquant_attention.h"

namespace sluice::ops {

void Attention::check_limits(const Dims& dims, bool host_memory) const {
  check_divides(kName, "H", dims["H"], "KH", dims["KH"]);
  check_window(kName, window);
  check_finite(kName, "scale", scale);
  check_read_rows(*this, dims, host_memory, window);
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

void MlaAttention::check_limits(const Dims& dims, bool host_memory) const {
  check_finite(kName, "scale", scale);
  check_read_rows(*this, dims, host_memory, 0);
}

void MlaTurboquantAttention::check_attributes() const {
  check_turboquant_bits(kName, "bits", bits);
  check_finite(kName, "scale", scale);
}

void MlaTurboquantAttention::check_limits(const Dims& dims, bool host_memory) const {
  check_rotation_width(kName, dims["rank"]);
  check_read_rows(*this, dims, host_memory, 0);
}

}  // namespace sluice::ops
