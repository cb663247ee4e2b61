// Rules that several ops share and that shapes cannot express.
#pragma once

#include <vector>

#include "base/error.h"
#include "ops/sequences.h"

namespace sluice::ops {

// Every entry of an I32 field lies in [0, limit).
void check_ids(std::string_view op, std::string_view field, const ConstView& ids, std::int64_t limit);
// No logit of one row, or of all rows, is NaN.
void check_no_nan(std::string_view op, const ConstView& logits, std::int64_t row);
void check_no_nan(std::string_view op, const ConstView& logits);
void check_finite_positive(std::string_view op, std::string_view attribute, double value);
void check_finite(std::string_view op, std::string_view attribute, double value);
// low <= value <= high.
void check_range(std::string_view op, std::string_view attribute, std::int64_t value, std::int64_t low,
                 std::int64_t high);
// Exactly one of two weights is given.
void check_one_of(std::string_view op, std::string_view first_name, const Weight& first,
                  std::string_view second_name, const Weight& second);
void check_divides(std::string_view op, std::string_view large_name, std::int64_t large,
                   std::string_view small_name, std::int64_t small);
void check_turboquant_bits(std::string_view op, std::string_view attribute, std::int64_t bits);
// The same, or 16 for BF16 numbers in place of codes.
void check_cache_bits(std::string_view op, std::string_view attribute, std::int64_t bits);
void check_rotation_width(std::string_view op, std::int64_t width);
void check_window(std::string_view op, std::int64_t window);

// The maximum number of rows of a sequence.
std::int64_t cache_rows(const Dims& dims);

// Rows [begin, end) of sequence b are in valid pages of the pool.
void check_pages(std::string_view op, const std::int32_t* pages, std::int64_t b, std::int64_t begin,
                 std::int64_t end, const Dims& dims);
// No page is written for two sequences, or for two positions of one.
class WrittenPages {
 public:
  void add(const std::int32_t* pages, std::int64_t begin, std::int64_t end, std::int64_t page_rows);
  void check(std::string_view op);

 private:
  std::vector<std::int32_t> written_;
};

// States are saved at ascending multiples of 64 tokens of a sequence.
template <class Op>
void check_saves(const Op& op, std::int64_t tokens, bool host_memory) {
  if (op.save_at.present() != op.saved.present())
    fail(ErrorKind::input, "{}: field '{}' is given without '{}'", Op::kName,
         op.saved.present() ? "saved" : "save_at", op.saved.present() ? "save_at" : "saved");
  if (!op.save_at.present() || !host_memory) return;
  const Sequences sequences(op, tokens);
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < op.save_at.dim(0); ++i) {
    const std::int64_t at = static_cast<const std::int32_t*>(op.save_at.data)[i];
    if (at < 0) continue;
    const bool inside = at > last && at <= tokens;
    if (!inside || (at - sequences[sequences.of_token(at - 1)].begin) % 64 != 0)
      fail(ErrorKind::input,
           "{}: field 'save_at' is {} at {}, allowed are ascending numbers up to T = {}, multiples of 64 "
           "after "
           "the first token of a sequence, or less than 0",
           Op::kName, at, i, tokens);
    last = at;
  }
}

// start >= 0 and start + tokens <= rows, for every sequence; calls f(b, start, end) for each if they are
// known.
template <class Op, class F>
void check_rows(const Op& op, const Dims& dims, bool host_memory, F&& f) {
  if (op.seq_starts.present() && !host_memory) return;
  const std::int64_t rows = cache_rows(dims);
  const Sequences sequences(op, dims["T"]);
  for (std::int64_t b = 0; b < sequences.count(); ++b) {
    const std::int64_t start = Sequences::value(op.start, b);
    const std::int64_t count = sequences[b].tokens();
    if (start < 0 || start > rows - count)
      fail(ErrorKind::input, "{}: 'start' is {} for {} tokens of sequence {}, the cache has {} rows",
           Op::kName, start, count, b, rows);
    f(b, start, start + count);
  }
}

// For ops that write the rows of their tokens.
template <class Op>
void check_written_rows(const Op& op, const Dims& dims, bool host_memory) {
  const Sequences sequences(op, dims["T"]);
  const bool contents = op.page_table.present() && host_memory;
  WrittenPages written;
  check_rows(op, dims, host_memory, [&](std::int64_t b, std::int64_t start, std::int64_t end) {
    if (!contents || start == end) return;
    const std::int32_t* pages = sequences.pages(sequences[b]);
    check_pages(Op::kName, pages, b, start, end, dims);
    written.add(pages, start, end, dims["S"]);
  });
  written.check(Op::kName);
}

// For ops that read rows 0 up to that of their last token, or the last `window` of each.
template <class Op>
void check_read_rows(const Op& op, const Dims& dims, bool host_memory, std::int64_t window) {
  const Sequences sequences(op, dims["T"]);
  const bool contents = op.page_table.present() && host_memory;
  check_rows(op, dims, host_memory, [&](std::int64_t b, std::int64_t start, std::int64_t end) {
    if (!contents || start == end) return;
    const std::int64_t first = window > 0 ? std::max<std::int64_t>(0, start + 1 - window) : 0;
    check_pages(Op::kName, sequences.pages(sequences[b]), b, first, end, dims);
  });
}

// Limits dimensions that nothing else limits, so that sums and products of sizes cannot overflow.
inline constexpr std::int64_t kMaxWidth = std::int64_t{1} << 20;

// The last dimension before shapes are checked; views without one are rejected later.
inline std::int64_t last_dim(const ConstView& view) {
  return view.rank() > 0 ? view.shape.back() : kMaxWidth;
}

// For ops that normalise and rotate q and k.
template <class Op>
void check_norm_rope(const Op& op, const Dims& dims) {
  if (2 * dims["M"] > dims["D"])
    fail(ErrorKind::input, "{}: field 'inv_freq' has {} frequencies, q and k have only D = {} channels",
         Op::kName, dims["M"], dims["D"]);
  check_finite_positive(Op::kName, "eps", op.eps);
  check_finite(Op::kName, "mscale", op.mscale);
}

}  // namespace sluice::ops
