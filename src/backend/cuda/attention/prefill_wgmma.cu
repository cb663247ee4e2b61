// Prefill attention on sm_90a: BF16 queries and caches, head widths 128 and 256, products by wgmma.
//
// A block has 128 query rows, tokens x heads of one KV head, 64 for each of two warpgroups; a third warpgroup
// copies keys and values, 64 rows of the cache at a time and two steps ahead. Scores are products of operands
// in shared memory; the weights stay in registers as the left operand of the product with the values. The
// softmax of one step runs while the tensor cores add the values of the previous step. Grid: token tiles, the
// longest loops first, and KV heads x head tiles. Operations: 4 D per query row and visible cache row. Scores
// are exact products with F32 sums; probabilities are rounded to BF16.
//
// Shared memory per step of 128 queries x 64 rows at width 256: 64 KiB copied, 128 KiB read by the score
// products and 64 KiB by those with values, in 2,048 cycles of the tensor cores.
#include "backend/cuda/attention/mma_tile.cuh"
#include "backend/cuda/attention/online_softmax.cuh"
#include "backend/cuda/attention/visible_rows.cuh"
#include "backend/cuda/device/wgmma.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::attention {

namespace {

constexpr int kStepRows = 64;  // rows of the cache per step
constexpr int kTileQueries = 128;
constexpr int kAttenders = 256;  // threads
constexpr int kCopiers = 128;
constexpr int kBuffers = 2;
constexpr int kAttenderRegisters = 224;
constexpr int kCopierRegisters = 56;
static_assert(kAttenderRegisters * kAttenders + kCopierRegisters * kCopiers <= 168 * (kAttenders + kCopiers));
constexpr int kPanelAlignment = 1024;
constexpr float kLog2OfE = 1.4426950408889634f;

// Rows in panels of 64 columns (128 bytes), with 16-byte chunks swizzled by the row number: the layout in
// which wgmma reads an operand by rows and, transposed, by columns.
template <int kWidth, int kCount>
struct Panels {
  static constexpr int kPanelBytes = kCount * 128;
  static constexpr int kBytes = kWidth / 64 * kPanelBytes;
  std::byte* data;

  __device__ __forceinline__ std::byte* at(int row, int chunk) const {
    return data + chunk / 8 * kPanelBytes + row * 128 + (chunk % 8 ^ row % 8) * 16;
  }
};

template <int kWidth>
struct WgmmaLayout {
  using Queries = Panels<kWidth, kTileQueries>;
  using Rows = Panels<kWidth, kStepRows>;
  static constexpr int kBytes = Queries::kBytes + 2 * kBuffers * Rows::kBytes + kPanelAlignment;
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// The barriers of a buffer for both operands.
struct Handshake {
  Barrier full;   // arrivals of copying threads
  Barrier empty;  // arrivals of attending warps
};
struct Barriers {
  Barrier queries;
  Handshake keys[kBuffers];
  Handshake values[kBuffers];
};

// A block's work.
template <int kWidth>
struct Work {
  const MmaCall& call;
  TokenTile tile;
  int kv_head;
  int first_head;
  int heads;  // in this tile
  typename WgmmaLayout<kWidth>::Queries queries;
  std::byte* rows;
  Barriers& barriers;

  __device__ __forceinline__ typename WgmmaLayout<kWidth>::Rows keys(int buffer) const {
    return {rows + 2 * buffer * WgmmaLayout<kWidth>::Rows::kBytes};
  }
  __device__ __forceinline__ typename WgmmaLayout<kWidth>::Rows values(int buffer) const {
    return {rows + (2 * buffer + 1) * WgmmaLayout<kWidth>::Rows::kBytes};
  }
};

template <int kWidth>
__device__ __forceinline__ void copy_queries(const Work<kWidth>& work, int thread) {
  constexpr int kChunks = kWidth / 8;
  const AttendCall& attend = work.call.attend;
#pragma unroll 4
  for (int i = thread; i < kTileQueries * kChunks; i += kCopiers) {
    const int r = i / kChunks;
    const int chunk = i % kChunks;
    const int token = work.tile.begin + r / attend.head_tile;
    const int head = r % attend.head_tile;
    const bool inside = token < work.tile.end && head < work.heads;
    const auto* from = static_cast<const Bf16*>(work.call.queries.data);
    if (inside)
      from += token * work.call.queries.token_stride +
              (work.first_head + head) * work.call.queries.head_stride + chunk * 8;
    copy_16(work.queries.at(r, chunk), from, inside);
  }
  work.barriers.queries.arrive_after_copies();
}

template <int kWidth>
__device__ __forceinline__ void copy_rows(const Work<kWidth>& work) {
  const int thread = to_int(threadIdx.x) - kAttenders;
  copy_queries(work, thread);
  const FetchRows keys(work.call.keys, work.tile, work.kv_head);
  const FetchRows values(work.call.values, work.tile, work.kv_head);
  int buffer = 0;
  std::uint32_t parity = 1;
  int entry = work.tile.pages.entry(keys.low);  // of the rows that are copied next
  for (long long row = keys.low / kStepRows * kStepRows; row < keys.high; row += kStepRows) {
    const int page = work.tile.pages.page(entry);
    if (row + kStepRows < keys.high) entry = work.tile.pages.entry(row + kStepRows);
    work.barriers.keys[buffer].empty.wait(parity);
    keys.template fetch<kWidth, kStepRows, kCopiers>(work.keys(buffer), row, page, thread);
    work.barriers.keys[buffer].full.arrive_after_copies();
    work.barriers.values[buffer].empty.wait(parity);
    values.template fetch<kWidth, kStepRows, kCopiers>(work.values(buffer), row, page, thread);
    work.barriers.values[buffer].full.arrive_after_copies();
    if (++buffer == kBuffers) buffer = 0, parity ^= 1;
  }
}

// The wgmma descriptor of a panel of values whose rows are the inner dimension: strides between panels and
// between groups of eight rows.
template <class Panel>
__device__ __forceinline__ std::uint64_t describe_columns(const std::byte* rows) {
  constexpr std::uint64_t kSwizzle128 = 1;
  return (shared_address(rows) & 0x3ffff) >> 4 | static_cast<std::uint64_t>(Panel::kPanelBytes >> 4) << 16 |
         static_cast<std::uint64_t>(1024 >> 4) << 32 | kSwizzle128 << 62;
}

// Starts scores = queries keysT for a warpgroup's 64 queries.
template <int kWidth>
__device__ __forceinline__ void start_scores(const Work<kWidth>& work, int buffer,
                                             float (&scores)[kStepRows / 2]) {
  using Layout = WgmmaLayout<kWidth>;
  const int warpgroup = to_int(threadIdx.x) / 128;
  const std::byte* queries = work.queries.data + warpgroup * 64 * 128;
  const std::byte* keys = work.keys(buffer).data;
  begin_products();
#pragma unroll
  for (int step = 0; step < kWidth / 16; ++step)
    multiply_64(scores, describe_rows(queries + step / 4 * Layout::Queries::kPanelBytes) + 2 * (step % 4),
                describe_rows(keys + step / 4 * Layout::Rows::kPanelBytes) + 2 * (step % 4), step > 0);
  close_products();
}

// Starts sums += weights values.
template <int kWidth>
__device__ __forceinline__ void start_sums(const Work<kWidth>& work, int buffer,
                                           const std::uint32_t (&weights)[kStepRows / 4],
                                           float (&sums)[kWidth / 2]) {
  using Rows = typename WgmmaLayout<kWidth>::Rows;
  const std::byte* values = work.values(buffer).data;
  begin_products();
#pragma unroll
  for (int step = 0; step < kStepRows / 16; ++step)
    multiply_registers_transposed(sums, weights + 4 * step, describe_columns<Rows>(values + step * 16 * 128));
  close_products();
}

__device__ __forceinline__ void mask(const Sight& sight, int row, float scale,
                                     float (&scores)[kStepRows / 2]) {
  const int column = to_int(threadIdx.x) % 4 * 2;
  const bool whole = sight.whole(row, kStepRows);
#pragma unroll
  for (int i = 0; i < kStepRows / 2; ++i) {
    const int at = row + i / 4 * 8 + column + i % 2;
    scores[i] = whole || sight.sees(i / 2 % 2, at) ? scores[i] * scale : -INFINITY;
  }
}

__device__ __forceinline__ void round_weights(const float (&scores)[kStepRows / 2],
                                              std::uint32_t (&weights)[kStepRows / 4]) {
#pragma unroll
  for (int i = 0; i < kStepRows / 4; ++i) weights[i] = pack_pair(scores[2 * i], scores[2 * i + 1]);
}

template <int kWidth>
__device__ __forceinline__ void attend_rows(const Work<kWidth>& work) {
  const AttendCall& attend = work.call.attend;
  const int first_row = to_int(threadIdx.x) / kWarp * 16;
  const Sight sight(attend, work.tile, first_row);
  const float scale = attend.scale * kLog2OfE;
  const long long begin = work.tile.first(work.tile.begin) / kStepRows * kStepRows;
  const long long end = work.tile.last(work.tile.end - 1) + 1;
  float sums[kWidth / 2] = {};
  OnlineSoftmax softmax;
  std::uint32_t weights[kStepRows / 4];
  work.barriers.queries.wait(0);
  int buffer = 0;
  std::uint32_t parity = 0;
  float scores[kStepRows / 2];
  work.barriers.keys[0].full.wait(0);
  publish_to_tensor_cores();
  start_scores(work, 0, scores);
  wait_for_sums(scores);
  work.barriers.keys[0].empty.arrive_once_per_warp();
  mask(sight, to_int(begin), scale, scores);
  softmax.weigh(scores);
  round_weights(scores, weights);
  for (long long row = begin + kStepRows; row < end; row += kStepRows) {
    const int next = buffer + 1 < kBuffers ? buffer + 1 : 0;
    const std::uint32_t next_parity = next == 0 ? parity ^ 1 : parity;
    work.barriers.keys[next].full.wait(next_parity);
    publish_to_tensor_cores();
    start_scores(work, next, scores);
    work.barriers.values[buffer].full.wait(parity);
    publish_to_tensor_cores();
    start_sums(work, buffer, weights, sums);
    wait_for_products<1>();
#pragma unroll
    for (float& score : scores) asm volatile("" : "+f"(score)::"memory");
    work.barriers.keys[next].empty.arrive_once_per_warp();
    mask(sight, to_int(row), scale, scores);
    const OnlineSoftmax::Factors factors = softmax.weigh(scores);
    wait_for_sums(sums);
    work.barriers.values[buffer].empty.arrive_once_per_warp();
    OnlineSoftmax::rescale(sums, factors);
    round_weights(scores, weights);
    buffer = next;
    parity = next_parity;
  }
  work.barriers.values[buffer].full.wait(parity);
  publish_to_tensor_cores();
  start_sums(work, buffer, weights, sums);
  wait_for_sums(sums);

  const int lane = to_int(threadIdx.x) % kWarp;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float inverse = 1 / quad_sum(softmax.total[h]);
    const int r = first_row + lane / 4 + h * 8;
    const int token = work.tile.begin + r / attend.head_tile;
    const int head = r % attend.head_tile;
    if (token >= work.tile.end || head >= work.heads) continue;
    auto* out = static_cast<Bf16*>(const_cast<void*>(attend.out.data)) + token * attend.out.token_stride +
                (work.first_head + head) * attend.out.head_stride + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < kWidth / 8; ++i)
      *reinterpret_cast<std::uint32_t*>(out + i * 8) =
          pack_pair(sums[4 * i + 2 * h] * inverse, sums[4 * i + 2 * h + 1] * inverse);
  }
}

#endif

template <int kWidth>
__global__ void __launch_bounds__(kAttenders + kCopiers, 1)
    prefill_wgmma_kernel(const __grid_constant__ MmaCall call) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ uint4 dynamic[];
  __shared__ Barriers barriers;
  if (threadIdx.x == 0) {
    barriers.queries.set_up(kCopiers);
    for (int i = 0; i < kBuffers; ++i)
      for (Handshake* one : {&barriers.keys[i], &barriers.values[i]}) {
        one->full.set_up(kCopiers);
        one->empty.set_up(kAttenders / kWarp);
      }
    publish_barriers();
  }
  __syncthreads();
  wait_for_inputs();
  allow_successor();
  auto* shared = reinterpret_cast<std::byte*>(dynamic);
  shared += (kPanelAlignment - shared_address(shared) % kPanelAlignment) % kPanelAlignment;
  const AttendCall& attend = call.attend;
  const TokenTile tile = tile_at(attend, kTileQueries / attend.head_tile, to_int(gridDim.x - 1 - blockIdx.x));
  if (tile.begin >= tile.end) return;
  const int kv_head = to_int(blockIdx.y) / attend.head_tiles();
  const int head_in_group = to_int(blockIdx.y) % attend.head_tiles() * attend.head_tile;
  const Work<kWidth> work{call,
                          tile,
                          kv_head,
                          kv_head * attend.group + head_in_group,
                          min(attend.head_tile, attend.group - head_in_group),
                          {shared},
                          shared + WgmmaLayout<kWidth>::Queries::kBytes,
                          barriers};
  if (threadIdx.x < kAttenders) {
    take_registers<kAttenderRegisters>();
    attend_rows(work);
  } else {
    give_registers<kCopierRegisters>();
    copy_rows(work);
  }
#endif
}

template <int kWidth>
void launch_width(Context& context, MmaCall call) {
  call.attend.head_tile = std::min(call.attend.group, kTileQueries);
  const dim3 blocks(tiles(call.attend, kTileQueries / call.attend.head_tile),
                    to_unsigned(call.attend.kv_heads() * call.attend.head_tiles()));
  launch(context, prefill_wgmma_kernel<kWidth>,
         {blocks, dim3(kAttenders + kCopiers), WgmmaLayout<kWidth>::kBytes}, call);
}

}  // namespace

bool prefill_wgmma_supports(const Context& context, const MmaCall& call) {
  return context.device().compute_capability == 90 && call.whole_chunks() && call.queries.width >= 128;
}

void attend_prefill_wgmma(Context& context, const MmaCall& call) {
  if (call.queries.width == 128) return launch_width<128>(context, call);
  launch_width<256>(context, call);
}

}  // namespace sluice::backend::cuda::attention
