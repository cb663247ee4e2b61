// Attention from packed caches on tensor cores.
#pragma once

#include "backend/cuda/attention/attend.cuh"
#include "backend/cuda/attention/packed/packed_cache.cuh"

namespace sluice::backend::cuda::attention::packed {

inline constexpr int kPackedSplitRows = 512;
inline constexpr int kPackedMostSplits = 64;

// The rows of the call's own tokens, if they are not read from codes: rotated, as levels and norms.
struct FreshLevels {
  const __half* levels = nullptr;  // [T,KH,D]; null: none
  const float* norms = nullptr;    // [T,KH]
};

struct PackedCall {
  AttendCall attend;  // the output is in the rotated basis, except for decode
  HeadRows queries;
  PackedCache keys;
  PackedCache values;
  const unsigned char* signs;
  bool rotated;  // the queries are already rotated
  FreshLevels fresh_keys;
  FreshLevels fresh_values;
};

// [KH,stride]: per row, the key's norm and log2 of the value's norm.
struct LevelColumns {
  float2* data;
  int stride;
};

// All rows that a prompt reads from codes, as levels in temporary memory, and what scores and weights need of
// the norms of these rows and of the call's own. Rows before `first` precede every query's window and are not
// stored.
struct LevelRows {
  __half* keys;  // [rows,KH,D]
  __half* values;
  LevelColumns columns;
  int first;
  int rows;
  LevelColumns own_columns;  // from the block of first_own on
  int first_own;             // first row that the call itself passes, if any

  __host__ __device__ int own_base() const {
    return first_own / static_cast<int>(ops::kFreshBlock) * static_cast<int>(ops::kFreshBlock);
  }

  static constexpr std::size_t kMostBytes = std::size_t{1} << 29;  // for keys and values
};

// Partial results in the rotated basis, with maxima as exponents of 2; the output stays rotated if `rotated`.
struct RotatedMerge {
  AttendCall attend;
  const unsigned char* signs;
  bool rotated;
};
// Combines the splits of tokens [first_token, +tokens), of widths 128, 256 and 512, into the output.
void merge_rotated(Context& context, const RotatedMerge& merge, int tokens);

// BF16 queries of 128 or 256 elements over codes of 4 bits, 8 bits, or 8 for keys and 4 for values, in whole
// 16-byte chunks, on devices with enough shared memory per block.
inline bool packed_mma_supports(const Context& context, const PackedCall& call) {
  constexpr std::size_t kSharedBytes = 227 * 1024;  // maximum of both kernels
  return call.queries.bf16 && (call.queries.width == 128 || call.queries.width == 256) &&
         call.keys.whole_chunks() && call.values.whole_chunks() && call.keys.bits >= call.values.bits &&
         context.device().shared_bytes_per_block >= kSharedBytes;
}
// The same for decode, which also supports 4-bit rows of 512 elements.
inline bool packed_decode_supports(const Context& context, const PackedCall& call) {
  PackedCall usual = call;
  if (call.queries.width == 512 && call.keys.bits == 4) usual.queries.width = 256;
  return packed_mma_supports(context, usual);
}
// Rotates its output back itself. `scratch` has SplitSizes(call.attend).bytes for splits of kPackedSplitRows.
void attend_packed_mma(Context& context, const PackedCall& call, std::byte* scratch);
void attend_packed_prefill(Context& context, const PackedCall& call);
// The same bits, for many tokens of one sequence without a pool: first converts the cached rows of `levels`
// to levels, and all norms to columns; the call contains the levels of its own rows.
void attend_levels_prefill(Context& context, const PackedCall& call, const LevelRows& levels,
                           long long ring_start);
// Converts keys or values [T,KH,D] of the call's own tokens, of width 128 or 256, to `to`.
void make_fresh_levels(Context& context, const PackedCall& call, const HeadRows& tokens, long long count,
                       int kv_heads, const FreshLevels& to);

// Calls f.operator()<k_bits, v_bits, width>().
template <class F>
void with_packed_format(const PackedCall& call, F&& f) {
  const auto with_width = [&]<int kWidth>() {
    if (call.keys.bits == 4) return f.template operator()<4, 4, kWidth>();
    if (call.values.bits == 4) return f.template operator()<8, 4, kWidth>();
    f.template operator()<8, 8, kWidth>();
  };
  if (call.queries.width == 128) return with_width.template operator()<128>();
  with_width.template operator()<256>();
}

}  // namespace sluice::backend::cuda::attention::packed
