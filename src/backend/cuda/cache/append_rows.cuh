// Writes new tokens into the rows of one or two caches of any layout: cache[slot][start+i] = tokens[i].
//
// One block per token and cache. Bytes: each element is read and written once. Exact, or rounded once if an
// F32 token goes into a BF16 cache. A row past the capacity is reported and skipped.
#pragma once

#include "backend/cuda/device/element.cuh"
#include "backend/cuda/runtime/launch.h"
#include "backend/cuda/runtime/pages.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::cache {

struct AppendSide {
  const void* tokens;
  void* cache;
  bool tokens_bf16;
  bool cache_bf16;
  long long token_stride;
  long long token_head_stride;
  long long pool_stride;
  long long row_stride;
  long long head_stride;
  int heads;
  int width;
};

// Translates a row of a sequence to its page and the row in that page; returns whether the page exists.
__device__ __forceinline__ bool turn_page(const SequencePages& pages, long long& slot, long long& row) {
  if (!pages.paged()) return true;
  const int entry = pages.entry(row);
  slot = pages.page(entry);
  row = pages.within(row);
  return slot == entry;
}

struct AppendCall {
  AppendSide sides[2];
  DeviceSequences sequences;
  SequenceNumber start;
  long long capacity;
  long long pool;
  Fault* fault;
  PageTable pages;

  // Where a token is written; not at all if it belongs to no sequence or contents are invalid, which is
  // reported.
  struct Place {
    long long slot = 0;  // or page
    long long row = 0;
    bool written = false;
  };
  __device__ __forceinline__ Place place(int token) const {
    const int b = sequences.of_token(token);
    const int begin = sequences.begin(b);
    Place place{sequences.slot(b), start[b] + token - begin};
    if (token < begin || token >= sequences.end(b)) return place;
    if (place.slot < 0 || place.slot >= pool)
      report(fault, FaultKind::pool_slot, place.slot, pool);
    else if (place.row < 0 || place.row >= capacity)
      report(fault, FaultKind::cache_row, place.row, capacity);
    else
      place.written = turn_page(pages.of(place.slot), place.slot, place.row);
    return place;
  }
};

inline AppendSide append_side(const ops::ConstView& tokens, const ops::View& cache, bool pooled) {
  const bool heads = tokens.rank() == 3;
  const int row = pooled ? 1 : 0;
  return {tokens.data,
          cache.data,
          tokens.dtype == ops::DType::bf16,
          cache.dtype == ops::DType::bf16,
          tokens.strides[0],
          heads ? tokens.strides[1] : 0,
          pool_stride(cache, pooled),
          cache.strides[row],
          heads ? cache.strides[row + 1] : 0,
          heads ? to_int(tokens.dim(1)) : 1,
          to_int(tokens.shape.back())};
}

template <class From, class To>
__device__ void copy_token(const AppendSide& side, const void* from_token, void* to_row) {
  for (int i = threadIdx.x; i < side.heads * side.width; i += blockDim.x) {
    const int head = i / side.width;
    const int column = i % side.width;
    const From value = static_cast<const From*>(from_token)[head * side.token_head_stride + column];
    static_cast<To*>(to_row)[head * side.head_stride + column] = from_float<To>(to_float(value));
  }
}

// Grid: tokens, sides.
static __global__ void append_rows(AppendCall call) {
  wait_for_inputs();
  allow_successor();
  const int token = blockIdx.x;
  const AppendCall::Place at = call.place(token);
  if (!at.written) return;
  const AppendSide& side = call.sides[blockIdx.y];
  const long long from = token * side.token_stride;
  const long long to = at.slot * side.pool_stride + at.row * side.row_stride;
  const void* tokens = static_cast<const char*>(side.tokens) + from * (side.tokens_bf16 ? 2 : 4);
  void* cache = static_cast<char*>(side.cache) + to * (side.cache_bf16 ? 2 : 4);
  if (side.tokens_bf16 && side.cache_bf16)
    copy_token<Bf16, Bf16>(side, tokens, cache);
  else if (side.tokens_bf16)
    copy_token<Bf16, float>(side, tokens, cache);
  else if (side.cache_bf16)
    copy_token<float, Bf16>(side, tokens, cache);
  else
    copy_token<float, float>(side, tokens, cache);
}

template <class Op>
AppendCall append_call(Context& context, const Op& op, const ops::ConstView& first,
                       const ops::View& first_cache, const ops::ConstView& second,
                       const ops::View& second_cache) {
  const CachePlan plan(op, first_cache, 0, context.fault());
  return {{append_side(first, first_cache, plan.pooled), append_side(second, second_cache, plan.pooled)},
          DeviceSequences(op, first.dim(0)),
          SequenceNumber(op.start),
          plan.capacity,
          plan.slots,
          context.fault(),
          plan.pages};
}

template <class Op>
void append(Context& context, const Op& op, const ops::ConstView& first, const ops::View& first_cache,
            const ops::ConstView& second, const ops::View& second_cache) {
  launch(context, append_rows, {dim3(to_unsigned(first.dim(0)), 2), dim3(256)},
         append_call(context, op, first, first_cache, second, second_cache));
}

// The same for one cache.
template <class Op>
void append(Context& context, const Op& op, const ops::ConstView& tokens, const ops::View& cache) {
  const CachePlan plan(op, cache, 0, context.fault());
  const AppendCall call{{append_side(tokens, cache, plan.pooled), {}},
                        DeviceSequences(op, tokens.dim(0)),
                        SequenceNumber(op.start),
                        plan.capacity,
                        plan.slots,
                        context.fault(),
                        plan.pages};
  launch(context, append_rows, {dim3(to_unsigned(tokens.dim(0)), 1), dim3(256)}, call);
}

}  // namespace sluice::backend::cuda::cache
