// What the attention kernels share: the call, the rows that a query sees, and the parts of a split cache.
//
// Query rows: the `group` query heads of one KV head attend to the same rows, so a tile holds `head_tile`
// heads for each of some tokens of one sequence. Decode kernels divide the cache into splits, counted from
// row 0, whose size follows from the query's own position; for each split they store a maximum, a total and
// weighted values, which merge_splits combines in ascending order. Prefill kernels iterate over a tile's rows
// from the first visible one. Rows that a query does not see add exactly 0, so its bits depend only on the
// rows that it sees.
#pragma once

#include <algorithm>
#include <climits>

#include "backend/cuda/device/element.cuh"
#include "backend/cuda/runtime/fault.h"
#include "backend/cuda/runtime/launch.h"
#include "backend/cuda/runtime/pages.cuh"
#include "backend/cuda/runtime/sequences.cuh"
#include "base/integer_cast.h"
#include "sluice/ops/fresh_rows.h"

namespace sluice::backend::cuda::attention {

// A [T,H,width] field.
struct HeadRows {
  const void* data = nullptr;
  bool bf16 = false;
  long long token_stride = 0;
  long long head_stride = 0;
  int width = 0;

  HeadRows() = default;
  template <class AnyView>
  explicit HeadRows(const AnyView& view)
      : data(view.data),
        bf16(view.dtype == ops::DType::bf16),
        token_stride(view.strides[0]),
        head_stride(view.strides[1]),
        width(to_int(view.dim(2))) {}

  // BF16 rows aligned to 16 bytes.
  bool whole_chunks() const {
    return bf16 && reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && token_stride % 8 == 0 &&
           head_stride % 8 == 0;
  }
  __device__ __forceinline__ float at(long long token, int head, int i) const {
    const long long offset = token * token_stride + head * head_stride + i;
    return bf16 ? to_float(static_cast<const Bf16*>(data)[offset]) : static_cast<const float*>(data)[offset];
  }
  __device__ __forceinline__ void set(long long token, int head, int i, float value) const {
    const long long offset = token * token_stride + head * head_stride + i;
    void* to = const_cast<void*>(data);
    if (bf16)
      static_cast<Bf16*>(to)[offset] = from_float<Bf16>(value);
    else
      static_cast<float*>(to)[offset] = value;
  }
};

// The partial results of splits: `width` sums, and a maximum and a total, for each of [tokens,heads,splits].
struct Partials {
  float* sums = nullptr;
  float2* scales = nullptr;
  int splits = 0;
  int width = 0;  // a multiple of 4

  __device__ __forceinline__ long long index(long long token, int heads, int head, int split) const {
    return (token * heads + head) * splits + split;
  }
};

struct AttendCall {
  HeadRows out;
  DeviceSequences sequences;
  SequenceNumber position;  // the row of a sequence's first query, or the sequence's length
  bool position_is_length = false;
  SequenceNumber ring_start;  // the slot of row 0
  int heads = 0;
  int group = 0;         // query heads per KV head
  int head_tile = 0;     // query heads per tile
  int first_token = 0;   // of this launch
  long long window = 0;  // 0: none
  float scale = 1;
  int split_rows = 256;  // rows of the cache per split, in decode kernels
  int most_splits = 0;   // per query: with more visible rows, splits are 2, 4, 8 .. times as long; 0: any
  long long capacity = 0;
  long long pool = 1;
  PageTable pages;
  bool own_rows = false;  // the call also passes its own rows as they were before encoding
  Partials partials;
  Fault* fault = nullptr;

  template <class Op>
  AttendCall(const Op& op, std::int64_t tokens, const ops::View& out_view, const ops::SequenceValue& rows)
      : out(out_view),
        sequences(op, tokens),
        position(rows),
        heads(to_int(out_view.dim(1))),
        scale(static_cast<float>(op.scale)) {}
  void set_caches(const CachePlan& plan, Fault* faults) {
    capacity = plan.capacity;
    pool = plan.slots;
    pages = plan.pages;
    fault = faults;
  }
  __host__ __device__ int head_tiles() const { return (group + head_tile - 1) / head_tile; }
  __host__ __device__ int kv_heads() const { return heads / group; }
  // How often the split size is doubled for a query whose last row is `last`.
  __device__ __forceinline__ int doublings(long long last) const {
    int count = 0;
    while (most_splits > 0 && last >= static_cast<long long>(split_rows) * most_splits << count) ++count;
    return count;
  }
};

// The query heads [first_head, +heads) of a KV head for a block with this index in y.
struct BlockHeads {
  int kv_head;
  int first_head;
  int heads;
};
__device__ __forceinline__ BlockHeads block_heads(const AttendCall& attend) {
  const int kv_head = to_int(blockIdx.y) / attend.head_tiles();
  const int head_in_group = to_int(blockIdx.y) % attend.head_tiles() * attend.head_tile;
  return {kv_head, kv_head * attend.group + head_in_group,
          min(attend.head_tile, attend.group - head_in_group)};
}

// Some tokens of one sequence, and the rows they see: token t sees rows [first(t), last(t)].
struct TokenTile {
  int sequence = 0;
  int begin = 0;
  int end = 0;  // empty: nothing to do
  long long slot = 0;
  long long base = 0;  // last(t) - t
  long long ring_start = 0;
  long long window = 0;
  long long first_own = LLONG_MAX;  // first row that the call itself passes
  SequencePages pages;

  __device__ __forceinline__ long long last(int token) const { return base + token; }
  __device__ __forceinline__ long long first(int token) const {
    const long long row = last(token);
    return window > 0 && window <= row ? row + 1 - window : 0;
  }
  // A query reads rows from here on as passed by the call, and earlier ones from the cache.
  __device__ __forceinline__ long long first_fresh(int token) const {
    return max(first_own, last(token) / ops::kFreshBlock * ops::kFreshBlock);
  }
  __device__ __forceinline__ long long last_cached(int token) const {
    return min(last(token), first_fresh(token) - 1);
  }
};

// Computes the other members from sequence, begin and end; makes the tile empty if contents are invalid.
__device__ inline void place(const AttendCall& call, TokenTile& tile) {
  const int b = tile.sequence;
  const int sequence_end = call.sequences.end(b);
  tile.slot = call.sequences.slot(b);
  tile.base =
      call.position_is_length ? call.position[b] - sequence_end : call.position[b] - call.sequences.begin(b);
  tile.ring_start = call.ring_start[b];
  tile.window = call.window;
  tile.pages = call.pages.of(tile.slot);
  if (call.own_rows) tile.first_own = tile.base + call.sequences.begin(b);
  if (tile.begin >= tile.end) return;
  const auto refuse = [&](FaultKind kind, long long given, long long limit) {
    if (threadIdx.x == 0) report(call.fault, kind, given, limit);
    tile.end = tile.begin;
  };
  if (tile.slot < 0 || tile.slot >= call.pool) return refuse(FaultKind::pool_slot, tile.slot, call.pool);
  if (tile.last(tile.begin) < 0 || tile.last(tile.end - 1) >= call.capacity)
    return refuse(FaultKind::cache_row, tile.last(tile.end - 1), call.capacity);
  const long long ring_limit = call.position[b] == call.capacity && !tile.pages.paged() ? call.capacity : 1;
  if (tile.ring_start < 0 || tile.ring_start >= ring_limit)
    refuse(FaultKind::ring_start, tile.ring_start, ring_limit);
}

// The tile of one token.
__device__ inline TokenTile tile_of_token(const AttendCall& call, int token) {
  TokenTile tile;
  tile.sequence = call.sequences.of_token(token);
  tile.begin = token;
  const bool inside =
      token >= call.sequences.begin(tile.sequence) && token < call.sequences.end(tile.sequence);
  tile.end = inside ? token + 1 : token;
  place(call, tile);
  return tile;
}

// Tile `index` of tiles of `tokens` tokens that never cross sequences: sequence b has the indices from
// begin(b)/tokens + b on, which are at least as many as it needs. Some of the tiles(T) indices are empty.
__device__ inline TokenTile tile_at(const AttendCall& call, int tokens, int index) {
  int low = 0;
  int high = call.sequences.count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (call.sequences.begin(middle) / tokens + middle <= index)
      low = middle;
    else
      high = middle - 1;
  }
  TokenTile tile;
  tile.sequence = low;
  const int begin = call.sequences.begin(low);
  const int end = call.sequences.end(low);
  tile.begin = begin + (index - begin / tokens - low) * tokens;
  tile.end = min(tile.begin + tokens, end);
  if (begin < 0 || end > call.sequences.tokens || tile.begin < begin) {
    if (threadIdx.x == 0)
      report(call.fault, FaultKind::sequence_start, end > call.sequences.tokens ? end : begin,
             call.sequences.tokens + 1);
    tile.end = tile.begin;
  }
  place(call, tile);
  return tile;
}
inline unsigned tiles(const AttendCall& call, int tokens) {
  return to_unsigned(call.sequences.tokens / tokens + call.sequences.count);
}

// Combines the splits of tokens [call.first_token, +tokens) into `out`.
void merge_splits(Context& context, const AttendCall& call, int tokens);

// How many tokens' partial results fit into a bounded amount of memory, and their size.
struct SplitSizes {
  int splits;
  int width;
  int tokens_at_once;
  std::size_t sum_bytes;
  std::size_t bytes;  // of sums and scales

  explicit SplitSizes(const AttendCall& call)
      : splits(to_int(divide_up<long long>(call.capacity, call.split_rows))),
        width(divide_up(call.out.width, 4) * 4) {
    constexpr std::size_t kMostBytes = std::size_t{1} << 29;
    if (call.most_splits > 0) splits = std::min(splits, call.most_splits);
    const std::size_t entries = to_size(call.heads) * splits;
    const std::size_t token_bytes = entries * (width + 2) * sizeof(float);
    const std::size_t fitting = std::max<std::size_t>(1, kMostBytes / token_bytes);
    tokens_at_once = to_int(std::min<std::size_t>(call.sequences.tokens, fitting));
    sum_bytes = tokens_at_once * entries * width * sizeof(float);
    bytes = tokens_at_once * token_bytes;
  }
};

// Runs decode kernels: launch_splits(call, tokens, lanes) for some tokens at a time, each followed by
// join(call, tokens). `lanes` blocks divide the splits of one token and head tile, to fill the device.
// `scratch` has SplitSizes(call).bytes.
template <class LaunchSplits, class Join>
void attend_in_splits(Context& context, AttendCall call, std::byte* scratch, int blocks_per_multiprocessor,
                      LaunchSplits&& launch_splits, Join&& join) {
  const SplitSizes sizes(call);
  call.partials = {reinterpret_cast<float*>(scratch), reinterpret_cast<float2*>(scratch + sizes.sum_bytes),
                   sizes.splits, sizes.width};
  const int tokens = call.sequences.tokens;
  for (call.first_token = 0; call.first_token < tokens; call.first_token += sizes.tokens_at_once) {
    const int count = std::min(sizes.tokens_at_once, tokens - call.first_token);
    const int columns = count * call.kv_heads() * call.head_tiles();
    const int wanted = divide_up(blocks_per_multiprocessor * context.device().multiprocessors, columns);
    launch_splits(call, count, std::min(sizes.splits, wanted));
    join(call, count);
  }
}
template <class LaunchSplits>
void attend_in_splits(Context& context, const AttendCall& call, std::byte* scratch,
                      int blocks_per_multiprocessor, LaunchSplits&& launch_splits) {
  attend_in_splits(context, call, scratch, blocks_per_multiprocessor, launch_splits,
                   [&](const AttendCall& part, int tokens) { merge_splits(context, part, tokens); });
}

}  // namespace sluice::backend::cuda::attention
