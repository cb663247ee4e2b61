// Calls over caches in pages, made of calls over caches whose rows lie one behind the other.
#pragma once

#include <string_view>

#include "runner/case.h"

namespace sluice::runner {

// One call twice: its results are the same bit for bit.
struct PagedCase {
  OpFile flat;   // as it was, but for rows that two sequences share now
  OpFile paged;  // the same rows strewn over a pool of pages, all other memory poisoned (NaN where the op
                 // only reads)
  bool differs = false;             // no where a cache is a ring, which pages cannot be
  std::vector<std::int32_t> pages;  // [slots, pages of a slot], of rows that are not in sight too

  // The caches that a paged call left as the flat one leaves them.
  void flatten(OpFile& outputs) const;

  std::string op;
  std::int64_t page_rows = 0;
  std::int64_t pages_of_slot(std::int64_t rows) const { return (rows + page_rows - 1) / page_rows; }
};

// Table entries that the call has no use for are no pages. Where an op only reads, two sequences share the
// first page if both see it whole.
PagedCase make_paged(std::string_view op, OpFile flat, std::int64_t page_rows, std::uint64_t seed);

// Adds some of the cases of an op again, in pages of 64, 128 and 256 rows.
void add_paged_cases(std::vector<Case>& table, std::string_view op);
// Adds all of the timed cases of an op again, in pages of `page_rows` rows.
void add_paged_bench_cases(std::vector<BenchCase>& table, std::string_view op, std::int64_t page_rows);

}  // namespace sluice::runner
