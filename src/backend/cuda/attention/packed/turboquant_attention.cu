// out = softmax(scale * q kT) v, computed from the packed cache.
//
// Keys and values stay in the rotated basis: q is rotated once, and the sum of values is rotated back once,
// in F32. BF16 queries of common widths over codes of whole bytes run on tensor cores, everything else in
// F32. Tensor cores also handle the unquantised rows of the call's own tokens, but only for prompts, for
// which these exist.
#include "sluice/ops/attention/turboquant_attention.h"

#include "backend/cuda/attention/packed/attend.h"
#include "backend/cuda/attention/packed/fresh_cache.cuh"
#include "backend/cuda/attention/plain.cuh"
#include "backend/cuda/cache/rotate_rows.h"
#include "base/integer_cast.h"
#include "sluice/ops/fresh_rows.h"

namespace sluice::backend::cuda::attention::packed {

namespace {

bool given(const ops::SequenceValue& value) {
  return value.per_sequence.present() || value.value != 0;
}

AttendCall attend_call(Context& context, const ops::TurboquantAttention& op) {
  AttendCall attend(op, op.q.dim(0), op.out, given(op.length) ? op.length : op.start);
  attend.position_is_length = given(op.length);
  attend.group = static_cast<int>(op.q.dim(1) / op.k_codes.dim(op.k_codes.rank() - 3));
  attend.window = op.window;
  attend.set_caches(CachePlan(op, op.k_codes, 1, context.fault()), context.fault());
  attend.ring_start = SequenceNumber(op.ring_start);
  attend.own_rows = op.k_new.present();
  return attend;
}

std::size_t aligned(std::size_t bytes) {
  return divide_up<std::size_t>(bytes, 256) * 256;
}

// Allocates scratch memory sequentially.
struct Scratch {
  std::byte* at;
  template <class T = void>
  T* take(std::size_t bytes) {
    std::byte* taken = at;
    at += aligned(bytes);
    return reinterpret_cast<T*>(taken);
  }
  // x in the rotated basis, in F32 unless it is already rotated.
  HeadRows rotated(Context& context, const ops::ConstView& x, const unsigned char* signs, bool already) {
    if (already || !x.present()) return x.present() ? HeadRows(x) : HeadRows();
    const ops::View to(take(to_size(x.elements()) * sizeof(float)), ops::DType::f32, x.shape);
    cache::rotate_rows(context, {x.data, to.data, RowOffsets(x), RowOffsets(to), signs, false}, x.dim(2),
                       x.dtype, ops::DType::f32);
    return HeadRows(to);
  }
};

FreshLevels fresh_levels(Context& context, const PackedCall& call, const ops::ConstView& tokens,
                         const FreshLevels& to) {
  make_fresh_levels(context, call, HeadRows(tokens), tokens.dim(0), to_int(tokens.dim(1)), to);
  return to;
}

// The scratch memory of prefill's fast kernels: levels of the call's own rows and, if that pays off, of the
// visible cached rows.
struct LevelMemory {
  long long own;     // rows that the call itself passes
  long long rows;    // visible ones; 0: codes are read directly
  long long first;   // the first of these
  long long cached;  // cached rows that are read as codes: [first, cached)
  std::size_t own_bytes;
  std::size_t norm_bytes;
  std::size_t level_bytes;
  std::size_t column_bytes;
  std::size_t own_column_bytes;

  explicit LevelMemory(const ops::TurboquantAttention& op)
      : own(op.k_new.present() ? op.k_new.dim(0) : 0),
        rows(rows_in_sight(op)),
        first(first_in_sight(op, rows)),
        cached(rows) {
    if (rows > 0 && own > 0) cached = ops::first_fresh_row(rows - 1, rows - own);
    const auto heads = static_cast<std::size_t>(op.k_codes.dim(op.k_codes.rank() - 3));
    const std::size_t row_bytes = heads * to_size(op.q.dim(2)) * sizeof(__half);
    own_bytes = aligned(to_size(own) * row_bytes);
    norm_bytes = aligned(to_size(own) * heads * sizeof(float));
    level_bytes = aligned(to_size(cached) * row_bytes);
    column_bytes = aligned(heads * to_size(column_stride()) * sizeof(float2));
    own_column_bytes = aligned(heads * to_size(own_column_stride()) * sizeof(float2));
  }
  // Rounded up to whole tiles of rows.
  long long column_stride() const { return divide_up<long long>(cached, 64) * 64; }
  long long own_column_stride() const { return rows > 0 ? divide_up<long long>(own, 64) * 64 + 64 : 0; }
  std::size_t bytes() const {
    return 2 * (own_bytes + norm_bytes + level_bytes) + column_bytes + own_column_bytes;
  }

 private:
  // The first row that the first token sees.
  static long long first_in_sight(const ops::TurboquantAttention& op, long long rows) {
    return op.window > 0 ? std::max<long long>(rows - op.q.dim(0) + 1 - op.window, 0) : 0;
  }
  // Only known here for a single sequence; 0 if converting all rows to levels does not pay off or takes too
  // much memory.
  static long long rows_in_sight(const ops::TurboquantAttention& op) {
    constexpr std::int64_t kFewTokens = 128;
    if (op.seq_starts.present() || op.q.dim(0) < kFewTokens) return 0;
    const long long rows = given(op.length) ? op.length.value : op.start.value + op.q.dim(0);
    const auto bytes = static_cast<std::size_t>(rows * op.k_codes.dim(op.k_codes.rank() - 3) * op.q.dim(2)) *
                       2 * sizeof(__half);
    return bytes <= LevelRows::kMostBytes ? rows : 0;
  }
};

void attend_prompt(Context& context, PackedCall call, const ops::TurboquantAttention& op,
                   const LevelMemory& sizes, Scratch scratch) {
  if (op.k_new.present()) {
    const auto own = [&](const ops::ConstView& tokens) {
      auto* levels = scratch.take<__half>(sizes.own_bytes);
      return fresh_levels(context, call, tokens, {levels, scratch.take<float>(sizes.norm_bytes)});
    };
    call.fresh_keys = own(op.k_new);
    call.fresh_values = own(op.v_new);
  }
  if (sizes.rows == 0) return attend_packed_prefill(context, call);
  auto* keys = scratch.take<__half>(sizes.level_bytes);
  auto* values = scratch.take<__half>(sizes.level_bytes);
  auto* columns = scratch.take<float2>(sizes.column_bytes);
  const LevelRows levels{keys,
                         values,
                         {columns, to_int(sizes.column_stride())},
                         to_int(std::min(sizes.first, sizes.cached)),
                         to_int(sizes.cached),
                         {scratch.take<float2>(sizes.own_column_bytes), to_int(sizes.own_column_stride())},
                         to_int(sizes.rows - sizes.own)};
  attend_levels_prefill(context, call, levels, op.ring_start.value);
}

}  // namespace

}  // namespace sluice::backend::cuda::attention::packed

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::TurboquantAttention& op) {
  using namespace attention;
  using namespace attention::packed;
  const bool pooled = op.seq_starts.present() || op.page_table.present();
  const auto* signs = static_cast<const unsigned char*>(op.signs.data);
  PackedCall packed{attend_call(context, op),
                    HeadRows(op.q),
                    PackedCache(op.k_codes, op.k_norms, op.k_bits, pooled),
                    PackedCache(op.v_codes, op.v_norms, op.v_bits, pooled),
                    signs,
                    op.rotated,
                    {},
                    {}};
  const bool decode = context.decode_class(op.q.dim(0));
  const bool fresh = op.k_new.present();
  const bool fast =
      decode ? !fresh && packed_decode_supports(context, packed) : packed_mma_supports(context, packed);
  if (fast && decode) {
    packed.attend.split_rows = kPackedSplitRows;
    packed.attend.most_splits = kPackedMostSplits;
    return attend_packed_mma(context, packed, context.scratch(SplitSizes(packed.attend).bytes));
  }
  // Queries in F32 (the fast kernels rotate theirs), sums to be rotated back, the call's own rows, partial
  // results.
  const std::size_t floats = aligned(to_size(op.q.elements()) * sizeof(float));
  const std::size_t fresh_bytes = fresh ? 2 * aligned(to_size(op.k_new.elements()) * sizeof(float)) + 512 : 0;
  const LevelMemory levels(op);
  Scratch scratch{context.scratch(2 * floats + (fast ? levels.bytes() : fresh_bytes) +
                                  (decode ? SplitSizes(packed.attend).bytes : 0))};
  const ops::View sums(op.rotated ? nullptr : scratch.take(floats), ops::DType::f32, op.q.shape);
  if (!op.rotated) packed.attend.out = HeadRows(sums);
  if (fast) {
    attend_prompt(context, packed, op, levels, scratch);
  } else {
    packed.queries = scratch.rotated(context, op.q, signs, op.rotated);
    const FreshCache keys{packed.keys, scratch.rotated(context, op.k_new, signs, op.rotated)};
    const FreshCache values{packed.values, scratch.rotated(context, op.v_new, signs, op.rotated)};
    run_plain(context, PlainCall<FreshCache, FreshCache>{packed.attend, {{packed.queries, {}}}, keys, values},
              scratch.at);
  }
  if (!op.rotated)
    cache::rotate_rows(context, {sums.data, op.out.data, RowOffsets(sums), RowOffsets(op.out), signs, true},
                       op.q.dim(2), ops::DType::f32, op.out.dtype);
}

}  // namespace sluice::backend::cuda
