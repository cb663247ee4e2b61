// Paged caches: how kernels find rows. The page table is in device memory, so a recorded program serves every
// step.
#pragma once

#include <bit>

#include "backend/cuda/runtime/sequences.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda {

// The page table of one sequence. Pages have 2^shift rows, at least 64, so a tile of rows lies in one page.
struct SequencePages {
  const int* entries = nullptr;  // null: the cache is contiguous
  int shift = 0;
  int pool = 0;  // number of pages
  Fault* fault = nullptr;

  __device__ __forceinline__ bool paged() const { return entries != nullptr; }
  // The table's entry for a row that the sequence has. Kernels load it before they need the page.
  __device__ __forceinline__ int entry(long long row) const {
    return paged() ? __ldg(entries + (row >> shift)) : 0;
  }
  // The page that an entry names; if it is invalid, the first page, and a fault.
  __device__ __forceinline__ int page(int entry) const {
    if (!paged() || static_cast<unsigned>(entry) < to_unsigned(pool)) return entry;
    report(fault, FaultKind::page, entry, pool);
    return 0;
  }
  // The row's index in its page.
  __device__ __forceinline__ long long within(long long row) const {
    return paged() ? row & ((1LL << shift) - 1) : row;
  }
};

struct PageTable {
  SequencePages first;   // entries per slot
  long long stride = 0;  // entries from one to the next

  PageTable() = default;
  // `rows` is the number of rows per page.
  template <class Op>
  PageTable(const Op& op, std::int64_t pool, std::int64_t rows, Fault* fault) {
    if (!op.page_table.present()) return;
    first = {static_cast<const int*>(op.page_table.data), std::countr_zero(to_unsigned(rows)), to_int(pool),
             fault};
    if (op.page_table.rank() == 2) stride = op.page_table.strides[0];
  }
  __device__ __forceinline__ SequencePages of(long long slot) const {
    SequencePages pages = first;
    if (pages.paged()) pages.entries += slot * stride;
    return pages;
  }
};

// The cache layout of an op: `cache` is one of its caches, with the rows as dimension `row_dimension` after
// that of the pool.
struct CachePlan {
  bool pooled;         // has a dimension of slots or pages
  long long slots;     // number of slots that sequences may have
  long long capacity;  // rows of a sequence
  PageTable pages;

  template <class Op, class AnyView>
  CachePlan(const Op& op, const AnyView& cache, int row_dimension, Fault* fault)
      : pooled(op.seq_starts.present() || op.page_table.present()),
        slots(pooled ? cache.dim(0) : 1),
        capacity(cache.dim(row_dimension + (pooled ? 1 : 0))),
        pages(op, slots, capacity, fault) {
    if (!op.page_table.present()) return;
    slots = op.page_table.rank() == 2 ? op.page_table.dim(0) : 1;
    capacity *= op.page_table.shape.back();
  }
};

}  // namespace sluice::backend::cuda
