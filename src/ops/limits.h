// Rules that several ops share and that shapes cannot express.
#pragma once

#include "base/error.h"
#include "ops/sequences.h"

namespace sluice::ops {

// Every entry of an I32 field lies in [0, limit).
void check_ids(std::string_view op, std::string_view field, const ConstView& ids, std::int64_t limit);
void check_finite_positive(std::string_view op, std::string_view attribute, double value);
void check_finite(std::string_view op, std::string_view attribute, double value);
// low <= value <= high.
void check_range(std::string_view op, std::string_view attribute, std::int64_t value, std::int64_t low,
                 std::int64_t high);
// One of two weights is given, not both.
void check_one_of(std::string_view op, std::string_view first_name, const Weight& first,
                  std::string_view second_name, const Weight& second);
void check_divides(std::string_view op, std::string_view large_name, std::int64_t large,
                   std::string_view small_name, std::int64_t small);
void check_turboquant_bits(std::string_view op, std::string_view attribute, std::int64_t bits);
// The same or 16, BF16 numbers in the place of codes.
void check_cache_bits(std::string_view op, std::string_view attribute, std::int64_t bits);
void check_rotation_width(std::string_view op, std::int64_t width);
void check_window(std::string_view op, std::int64_t window);

// start >= 0 and start + tokens <= rows, for every sequence.
template <class Op>
void check_rows(const Op& op, std::int64_t tokens, std::int64_t rows, bool host_memory) {
  if (op.seq_starts.present() && !host_memory) return;
  const Sequences sequences(op, tokens);
  for (std::int64_t b = 0; b < sequences.count(); ++b) {
    const std::int64_t start = Sequences::value(op.start, b);
    const std::int64_t count = sequences[b].tokens();
    if (start < 0 || start > rows - count)
      fail(ErrorKind::input, "{}: 'start' is {} for {} tokens of sequence {}, the cache has {} rows",
           Op::kName, start, count, b, rows);
  }
}

}  // namespace sluice::ops
