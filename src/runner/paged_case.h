// Calls over paged caches, made from calls over contiguous caches.
#pragma once

#include <string_view>

#include "runner/case.h"

namespace sluice::runner {

// The same call in two forms, whose results must be bit-identical.
struct PagedCase {
  OpFile flat;   // the original, except for rows that two sequences now share
  OpFile paged;  // the same rows scattered over a pool of pages, with all other memory poisoned (NaN where
                 // the op only reads)
  bool differs = false;             // false for caches that are rings, which cannot be paged
  std::vector<std::int32_t> pages;  // [slots, pages of a slot], including those of rows that are not visible

  // Reorders the caches that a paged call wrote like those of the flat one.
  void flatten(OpFile& outputs) const;

  std::string op;
  std::int64_t page_rows = 0;
  std::int64_t pages_of_slot(std::int64_t rows) const { return (rows + page_rows - 1) / page_rows; }
};

// Unused table entries are not valid pages. If the op only reads, two sequences that see all of the first
// page share it.
PagedCase make_paged(std::string_view op, OpFile flat, std::int64_t page_rows, std::uint64_t seed);

// Adds some of the cases of an op again, in pages of 64, 128 and 256 rows.
void add_paged_cases(std::vector<Case>& table, std::string_view op);
// Adds all of the timed cases of an op again, in pages of `page_rows` rows.
void add_paged_bench_cases(std::vector<BenchCase>& table, std::string_view op, std::int64_t page_rows);

}  // namespace sluice::runner
