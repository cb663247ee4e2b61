// Appends new vectors to packed caches, keys and values in one launch if both have the fast path: BF16 of
// 128, 256 or 512 elements to 4 or 8 bits, four vectors per warp. Otherwise one warp per vector, in double.
#pragma once

#include "backend/cuda/cache/append_rows.cuh"
#include "backend/cuda/cache/encode_group.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"
#include "sluice/ops/cache/turboquant_append.h"

namespace sluice::backend::cuda::cache {

inline constexpr int kEncodeWarps = 8;

// x is [T,H,D], or [T,D] for one head; codes and norms have or lack the dimension of heads likewise.
struct RingSide {
  const void* x;
  ops::DType type;
  int width;
  unsigned char* codes;
  float* norms;
  long long x_token_stride;
  long long x_head_stride;
  long long code_pool_stride;
  long long code_head_stride;
  long long code_slot_stride;
  long long norm_pool_stride;
  long long norm_head_stride;
  Encoder encoder;

  RingSide(const ops::ConstView& from, const ops::View& code_view, const ops::View& norm_view, bool pooled,
           std::int64_t bits, bool matched)
      : x(from.data),
        type(from.dtype),
        width(to_int(from.shape.back())),
        codes(static_cast<unsigned char*>(code_view.data)),
        norms(static_cast<float*>(norm_view.data)),
        x_token_stride(from.strides[0]),
        x_head_stride(from.rank() == 3 ? from.strides[1] : 0),
        code_pool_stride(pool_stride(code_view, pooled)),
        code_head_stride(from.rank() == 3 ? code_view.strides[pooled ? 1 : 0] : 0),
        code_slot_stride(code_view.strides[code_view.rank() - 2]),
        norm_pool_stride(pool_stride(norm_view, pooled)),
        norm_head_stride(from.rank() == 3 ? norm_view.strides[pooled ? 1 : 0] : 0),
        encoder(bits, matched) {}

  bool grouped() const {
    const auto whole = [](const void* data, std::initializer_list<long long> strides) {
      bool result = reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
      for (const long long stride : strides) result = result && stride % 16 == 0;
      return result;
    };
    return type == ops::DType::bf16 && (width == 128 || width == 256 || width == 512) &&
           (encoder.bits == 4 || encoder.bits == 8) && whole(x, {x_token_stride, x_head_stride}) &&
           whole(codes, {code_pool_stride, code_head_stride, code_slot_stride});
  }
};

// A vector's number is token * heads + head.
struct RingCall {
  DeviceSequences sequences;
  SequenceNumber start;
  const unsigned char* signs;
  int heads;
  long long ring;
  bool wraps;  // rows past the last slot wrap around; otherwise they are an error
  long long pool;
  Fault* fault;
  PageTable pages;  // never with `wraps`

  // Where a vector is written; not at all if a later token gets the same slot, or contents are invalid.
  struct Place {
    long long slot = 0;  // of the pool, or a page
    long long row = 0;
    bool written = false;
  };
  __device__ __forceinline__ Place place(int token) const {
    Place place;
    if (token >= sequences.tokens) return place;
    const int b = sequences.of_token(token);
    const int begin = sequences.begin(b);
    const int end = sequences.end(b);
    const long long first = start[b];
    place.slot = sequences.slot(b);
    if (token < begin || token >= end || token + ring < end) return place;
    if (place.slot < 0 || place.slot >= pool) {
      report(fault, FaultKind::pool_slot, place.slot, pool);
      return place;
    }
    place.row = first + (token - begin);
    if (first < 0 || (!wraps && place.row >= ring)) {
      report(fault, FaultKind::cache_row, first < 0 ? first : place.row, ring);
      return place;
    }
    if (place.row >= ring) place.row %= ring;
    place.written = turn_page(pages.of(place.slot), place.slot, place.row);
    return place;
  }
};

// Where the vector of a head is written.
__device__ __forceinline__ EncodedVector encoded_at(const RingSide& side, const RingCall::Place& at,
                                                    int head) {
  return {side.codes + at.slot * side.code_pool_stride + head * side.code_head_stride +
              at.row * side.code_slot_stride,
          side.norms + at.slot * side.norm_pool_stride + head * side.norm_head_stride + at.row};
}

// Encodes a token's vector by one warp.
template <class T, int kCount, bool kNumbers>
__device__ __forceinline__ void encode_vector(const RingSide& side, const RingCall::Place& at, int head,
                                              int token, const unsigned char* signs,
                                              const EncodeMemory& memory) {
  encode_vector<T, kCount, kNumbers>(
      side.encoder, memory,
      static_cast<const T*>(side.x) + token * side.x_token_stride + head * side.x_head_stride, signs,
      encoded_at(side, at, head));
}

template <class T, int kCount, bool kNumbers>
__global__ void ring_append(const __grid_constant__ RingCall call, const __grid_constant__ RingSide side) {
  __shared__ double bounds[256];
  __shared__ unsigned char scratch[kEncodeWarps][kCount * kWarp];
  share_bounds(side.encoder, bounds);
  __syncthreads();
  wait_for_inputs();
  allow_successor();
  const int warp = to_int(threadIdx.x) / kWarp;
  const long long vector = static_cast<long long>(blockIdx.x) * kEncodeWarps + warp;
  const long long token = vector / call.heads;
  if (token >= call.sequences.tokens) return;
  const RingCall::Place at = call.place(to_int(token));
  if (!at.written) return;
  encode_vector<T, kCount, kNumbers>(side, at, to_int(vector % call.heads), to_int(token), call.signs,
                                     {bounds, scratch[warp]});
}

struct GroupSides {
  RingSide at[2];
};

inline RingCall ring_call(Context& context, const ops::TurboquantAppend& op) {
  const CachePlan plan(op, op.k_codes, 1, context.fault());
  return {DeviceSequences(op, op.k.dim(0)),
          SequenceNumber(op.start),
          static_cast<const unsigned char*>(op.signs.data),
          to_int(op.k.dim(1)),
          plan.capacity,
          !op.page_table.present(),
          plan.slots,
          context.fault(),
          plan.pages};
}

inline GroupSides ring_sides(const ops::TurboquantAppend& op) {
  const bool pooled = op.seq_starts.present() || op.page_table.present();
  const bool matched = op.norm == ops::TurboquantNorm::matched;
  return {{RingSide(op.k, op.k_codes, op.k_norms, pooled, op.k_bits, matched),
           RingSide(op.v, op.v_codes, op.v_norms, pooled, op.v_bits, matched)}};
}

// The vectors of one head for four tokens, from token `first` on.
struct TokenGroup {
  int head;
  int first;
};

// The values of a group that a lane loads.
template <int kWidth>
struct GroupWords {
  static constexpr int kColumns = kWidth / 16;
  alignas(16) std::uint32_t at[4][kColumns / 4];

  // The first coordinate; the lane's rows are 4 * kColumns coordinates apart.
  static __device__ __forceinline__ int first_coordinate() {
    const int lane = to_int(threadIdx.x) % kWarp;
    return lane % 4 * kColumns + lane / 4 % 2 * (kColumns / 2);
  }
  __device__ __forceinline__ void load(const RingSide& side, const TokenGroup& group, int tokens) {
    const int token = min(group.first + to_int(threadIdx.x) % kWarp / 8, tokens - 1);
    const Bf16* x = static_cast<const Bf16*>(side.x) + token * side.x_token_stride +
                    group.head * side.x_head_stride + first_coordinate();
#pragma unroll
    for (int m = 0; m < 4; ++m) copy_words<kColumns>(at[m], x + 4 * m * kColumns);
  }
  __device__ __forceinline__ void apply(const std::uint32_t* signs) {
#pragma unroll
    for (int m = 0; m < 4; ++m)
#pragma unroll
      for (int w = 0; w < kColumns / 4; ++w)
        at[m][w] ^= signs[(first_coordinate() + 4 * m * kColumns) / 2 + w];
  }
};

// Encodes these four vectors, whose signs are applied, and writes them.
template <int kWidth, int kBits>
__device__ __forceinline__ void append_group(const RingCall& call, const RingSide& side,
                                             GroupShared<kWidth, kEncodeWarps>& shared,
                                             const Fragment& hadamard, const TokenGroup& group,
                                             const GroupWords<kWidth>& given) {
  using Codes = GroupCodes<kWidth, kBits>;
  constexpr int kColumns = Codes::kColumns;
  const int lane = to_int(threadIdx.x) % kWarp;
  const auto source = [&](int token) {
    return static_cast<const Bf16*>(side.x) + token * side.x_token_stride + group.head * side.x_head_stride;
  };
  const RingCall::Place place = call.place(group.first + lane % 4);
  const EncodedVector to = encoded_at(side, place, group.head);

  Codes codes(shared, hadamard, given.at, side.encoder.matched);
  while (true) {
    const bool open = place.written && !codes.strange && (codes.doubts[0] | codes.doubts[1]) != 0;
    const unsigned lanes = __ballot_sync(0xffffffffu, open);
    if (lanes == 0) break;
    const int owner = __ffs(lanes) - 1;
    const std::uint32_t doubts = codes.doubts[0] != 0 ? codes.doubts[0] : codes.doubts[1];
    const int run = __shfl_sync(0xffffffffu, codes.doubts[0] != 0 ? 0 : 1, owner);
    const int n = __ffs(static_cast<int>(__shfl_sync(0xffffffffu, doubts, owner))) - 1;
    const unsigned code = exact_code<kWidth, kBits>(shared, source(group.first + owner % 4),
                                                    (owner / 4 + 8 * run) * kColumns + n);
    if (lane == owner) codes.settle(shared, run, n, code);
  }
  const float own_norm = codes.norm(side.encoder.matched);
  if (place.written && !codes.strange) {
#pragma unroll
    for (int run = 0; run < 2; ++run)
      copy_words<kColumns * kBits / 8>(
          reinterpret_cast<std::uint32_t*>(to.codes + (lane / 4 + 8 * run) * (kColumns * kBits / 8)),
          codes.words[run]);
    if (lane < 4) *to.norm = own_norm;
  }
  const unsigned strange = __ballot_sync(0xffffffffu, codes.strange && place.written);
  if (strange == 0) return;
  for (int i = 0; i < 4; ++i) {
    if ((strange & 1u << i) == 0) continue;
    const EncodeMemory memory{shared.bounds, shared.scratch[threadIdx.x / kWarp]};
    const EncodedVector strange_to{
        reinterpret_cast<unsigned char*>(
            __shfl_sync(0xffffffffu, reinterpret_cast<unsigned long long>(to.codes), i)),
        reinterpret_cast<float*>(__shfl_sync(0xffffffffu, reinterpret_cast<unsigned long long>(to.norm), i))};
    encode_vector<Bf16, kWidth / kWarp>(side.encoder, memory, source(group.first + i), call.signs,
                                        strange_to);
  }
}

// All groups of a warp. If registers allow, the next group is loaded while one is encoded.
template <int kWidth, int kBits>
__device__ __forceinline__ void append_every(const RingCall& call, const RingSide& side,
                                             GroupShared<kWidth, kEncodeWarps>& shared,
                                             const Fragment& hadamard, int head) {
  constexpr bool kAhead = kWidth < 512;
  const int tokens = call.sequences.tokens;
  const auto stride = to_int(gridDim.x * kEncodeWarps * 4);
  auto first = to_int((blockIdx.x * kEncodeWarps + threadIdx.x / kWarp) * 4);
  if (first >= tokens) return;
  GroupWords<kWidth> words;
  words.load(side, {head, first}, tokens);
  while (true) {
    GroupWords<kWidth> given = words;
    const int next = first + stride;
    if (kAhead && next < tokens) words.load(side, {head, next}, tokens);
    given.apply(shared.signs);
    append_group<kWidth, kBits>(call, side, shared, hadamard, {head, first}, given);
    if (next >= tokens) return;
    if (!kAhead) words.load(side, {head, next}, tokens);
    first = next;
  }
}

// Grid: groups of four tokens, eight groups per block; heads; sides.
template <int kWidth>
__global__ void __launch_bounds__(kEncodeWarps* kWarp, 2)
    group_append(const __grid_constant__ RingCall call, const __grid_constant__ GroupSides sides) {
  __shared__ GroupShared<kWidth, kEncodeWarps> shared;
  const RingSide& side = sides.at[blockIdx.z];
  const bool nibbles = side.encoder.bits == 4;
  if (nibbles)
    shared.template fill<4>(side.encoder, call.signs);
  else
    shared.template fill<8>(side.encoder, call.signs);
  const Fragment hadamard = hadamard_operand();
  wait_for_inputs();
  allow_successor();
  if (nibbles)
    append_every<kWidth, 4>(call, side, shared, hadamard, to_int(blockIdx.y));
  else
    append_every<kWidth, 8>(call, side, shared, hadamard, to_int(blockIdx.y));
}

inline void append_groups(Context& context, const RingCall& call, const GroupSides& sides, int count) {
  const int groups = divide_up(divide_up(call.sequences.tokens, 4), kEncodeWarps);
  const int resident = divide_up(2 * context.device().multiprocessors, count * call.heads);
  const Grid grid{dim3(to_unsigned(std::min(groups, resident)), to_unsigned(call.heads), to_unsigned(count)),
                  dim3(kEncodeWarps * kWarp)};
  const int width = sides.at[0].width;
  if (width == 128) return launch(context, group_append<128>, grid, call, sides);
  if (width == 256) return launch(context, group_append<256>, grid, call, sides);
  launch(context, group_append<512>, grid, call, sides);
}

// kNumbers: `side` may have rows of 16 bits.
template <bool kNumbers>
void append_vectors(Context& context, const RingCall& call, const RingSide& side) {
  if (side.grouped()) return append_groups(context, call, {{side, side}}, 1);
  const long long vectors = static_cast<long long>(call.sequences.tokens) * call.heads;
  const Grid grid{dim3(to_unsigned(divide_up<long long>(vectors, kEncodeWarps))), dim3(kEncodeWarps * kWarp)};
  with_rotation_width(side.width, [&]<int kCount>() {
    with_activation(side.type, [&]<class T>() {
      if (kNumbers && side.encoder.bits == 16)
        launch(context, ring_append<T, kCount, kNumbers>, grid, call, side);
      else
        launch(context, ring_append<T, kCount, false>, grid, call, side);
    });
  });
}

}  // namespace sluice::backend::cuda::cache
