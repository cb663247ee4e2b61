// Caches in pages, as kernels find their rows. The table is in device memory, so that a recorded program
// serves every step.
#pragma once

#include <bit>

#include "backend/cuda/runtime/sequences.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda {

// The entries of one sequence. Pages have 2^shift rows, at least 64, so that a tile of rows lies in one page.
struct SequencePages {
  const int* entries = nullptr;  // null: rows lie one behind the other
  int shift = 0;
  int pool = 0;  // pages
  Fault* fault = nullptr;

  __device__ __forceinline__ bool paged() const { return entries != nullptr; }
  // What the table says of a row that is in sight. A kernel asks for it before it needs the page.
  __device__ __forceinline__ int entry(long long row) const {
    return paged() ? __ldg(entries + (row >> shift)) : 0;
  }
  // The page that an entry names; the first one, and a fault, where it names none.
  __device__ __forceinline__ int page(int entry) const {
    if (!paged() || static_cast<unsigned>(entry) < to_unsigned(pool)) return entry;
    report(fault, FaultKind::page, entry, pool);
    return 0;
  }
  // A row's place in its page.
  __device__ __forceinline__ long long within(long long row) const {
    return paged() ? row & ((1LL << shift) - 1) : row;
  }
};

struct PageTable {
  SequencePages first;   // of the sequence in slot 0
  long long stride = 0;  // entries from one to the next

  PageTable() = default;
  // `rows` are those of a page.
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

// How the caches of an op lie: `cache` is one of them, its rows the dimension `row_dimension` behind that of
// the pool.
struct CachePlan {
  bool pooled;         // has the dimension of slots or pages
  long long slots;     // that a sequence may have
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
