// The driver of the integer products: which rows of x meet which matrix, and who computes them.
//
// Rows of x are rounded once per call. Where many rows share a matrix they are packed as tiles of sixteen
// tokens if the processor has matrix units, or meet panels of unpacked weights; otherwise each weight row is
// read against a few of them at a time, by products of bytes where an Arm processor has them. Bound by
// reading the weights for few tokens, by 2*T*N*K integer operations for many.
#if defined(SLUICE_BACKEND_CPU_INTEGER_DRIVER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_INTEGER_DRIVER_INL_H_
#undef SLUICE_BACKEND_CPU_INTEGER_DRIVER_INL_H_
#else
#define SLUICE_BACKEND_CPU_INTEGER_DRIVER_INL_H_
#endif

#include <algorithm>

#include "backend/cpu/linear/buckets.h"
#include "backend/cpu/linear/integer/amx_int8.h"
#include "backend/cpu/linear/integer/arm_int8.h"
#include "backend/cpu/linear/integer/panel-inl.h"
#include "backend/cpu/linear/integer/tile-inl.h"
#include "backend/cpu/linear/weight_streams.h"
#include "backend/cpu/runtime/row_walk.h"
#include "base/integer_cast.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET {

constexpr std::int64_t kItemRows = 256;       // weight rows of a work item at most
constexpr std::int64_t kItemBytes = 1 << 14;  // of weights at least: handing out work takes time too
constexpr std::int64_t kFewTokens = 64;       // rows of x multiplied directly that stay in the caches
// Of one matrix; unpacking a row for so few is faster than storing it for tiles or panels.
constexpr std::int64_t kVectorTokens = 4;
// Where panels of 4-bit codes take no more time than reading the codes for a few tokens at a time.
constexpr std::int64_t kNibblePanelTokensAtLeast = kBytePanels ? 6 : 8;
// The same of panels whose codes are unpacked row by row: a product by VNNI takes less time than unpacking.
constexpr std::int64_t kPanelTokensAtLeast = kHasVnni ? 24 : 9;
constexpr std::int64_t kSerialColumns = 1 << 14;  // of x that are rounded faster than the pool wakes up

void round_plain_row(const MatrixFormat& format, const float* x, std::byte* to) {
  const PlainRowLayout layout(format);
  for (std::int64_t g = 0; g < format.groups(); ++g)
    round_group(x + g * format.group_size, format.group_size,
                reinterpret_cast<std::int16_t*>(to) + g * format.group_size,
                reinterpret_cast<float*>(to + layout.scales_at)[g],
                reinterpret_cast<float*>(to + layout.sums_at)[g]);
}

// A row of x for products of bytes, laid out like one for products of words. `integers` has room for the row.
void round_byte_row(const MatrixFormat& format, const float* x, std::int16_t* integers, std::byte* to) {
  const IntegerRowLayout layout(format);
  auto* scales = reinterpret_cast<float*>(to + layout.scales_at);
  auto* sums = reinterpret_cast<float*>(to + layout.sums_at);
  for (std::int64_t g = 0; g < format.groups(); ++g) {
    float scale = 0;
    float sum = 0;
    round_group(x + g * format.group_size, format.group_size, integers + g * format.group_size, scale, sum);
    std::fill_n(scales + g * arm::kRows, arm::kRows, scale);
    std::fill_n(sums + g * arm::kRows, arm::kRows, sum);
  }
  arm::split_digits(format, integers, to);
}

// A worker's scratch block, in order.
class WorkerScratch {
 public:
  float* scales;
  float* biases;
  float* line;  // groups of some rows on the way to the others
  float* results[2];
  amx::Scratch* tiles;  // or
  PanelScratch* panels;

  static std::size_t bytes(const MatrixFormat& format, std::int64_t tokens) {
    return to_size(3 * kMostRows * padded_groups(format) + 2 * tokens * kItemRows + 4 * kLanes) *
               sizeof(float) +
           kBlockBytes;
  }
  WorkerScratch(const MatrixFormat& format, std::int64_t tokens, std::byte* block)
      : scales(reinterpret_cast<float*>(block + kBlockBytes)),
        biases(scales + kMostRows * padded_groups(format)),
        line(biases + kMostRows * padded_groups(format)),
        results{line + kMostRows * padded_groups(format),
                line + kMostRows * padded_groups(format) + tokens * kItemRows},
        tiles(reinterpret_cast<amx::Scratch*>(block)),
        panels(reinterpret_cast<PanelScratch*>(block)) {}

 private:
  static constexpr std::int64_t kMostRows = std::max(amx::kRows, kPanelRows);
  static constexpr std::size_t kBlockBytes = std::max(sizeof(amx::Scratch), sizeof(PanelScratch));
};

class IntegerRun {
 public:
  IntegerRun(Context& context, const Linear& op)
      : context_(context), op_(op), format_(op.w.format()), out_rows_(row_count(op.out.shape)) {
    const std::int64_t rows = row_count(op.x.shape);
    row_bytes_ = IntegerRowLayout(format_).bytes;
    plain_bytes_ = PlainRowLayout(format_).bytes;
    has_tiles_ = amx::available(context.isa()) && amx::knows(format_);
    // Each bucket may leave one tile part empty.
    const std::int64_t tiles = has_tiles_ ? out_rows_ / amx::kTokens + std::min(out_rows_, op.w.count()) : 0;
    const auto x_bytes = to_size(rows * (row_bytes_ + plain_bytes_) + tiles * amx::tile_bytes(format_));
    const auto starts_bytes = to_size(op.w.count() + 1) * sizeof(std::int32_t);
    x_ = context.shared_scratch(x_bytes + starts_bytes + Buckets::bytes(out_rows_, op.w.count()));
    first_tile_ = reinterpret_cast<std::int32_t*>(x_ + x_bytes);
    buckets_ = Buckets(op.experts, out_rows_, op.w.count(), x_ + x_bytes + starts_bytes);
    plain_ = x_ + rows * row_bytes_;
    by_bytes_ = arm::knows(context.isa(), format_);
    for (std::int64_t i = 0; i < buckets_.count(); ++i)
      (way_of(i) == Way::direct ? direct_ : plainly_) = true;
    round_rows(rows);
    if (has_tiles_ && plainly_) pack_tiles(plain_ + rows * plain_bytes_);
  }

  void run() {
    const std::int64_t step = !plainly_ ? kQuad : has_tiles_ ? amx::kRows : kPanelRows;
    const std::int64_t wanted_items = context_.pool().size() * 8;
    const std::int64_t fewest = kItemBytes / (operands() * format_.row_bytes);
    const std::int64_t item_rows = std::clamp<std::int64_t>(
        round_up(std::max(format_.rows * buckets_.count() / wanted_items, fewest), step), step, kItemRows);
    const std::int64_t items = (format_.rows + item_rows - 1) / item_rows;
    const std::int64_t all = items * buckets_.count();
    const std::int64_t shares = token_shares(all);
    context_.pool().parallel_for_dynamic(
        0, all * shares, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
          for (std::int64_t task = begin; task < end; ++task) {
            const std::int64_t i = task / shares;
            const std::int64_t row = i % items * item_rows;
            const std::int64_t row_end = std::min(row + item_rows, format_.rows);
            const Way way = way_of(i / items);
            if (way == Way::panels)
              run_panels(share_of(buckets_[i / items], task % shares, shares), row, row_end, worker);
            if (way == Way::panels || task % shares > 0) continue;
            if (way == Way::tiles) run_tiles(i / items, row, row_end, worker);
            if (way != Way::direct) continue;
            // A worker's items follow each other.
            const std::int64_t next = std::min(i + 1, all - 1);
            const std::int64_t next_row = next % items * item_rows;
            const WeightStreams following{format_, op_.w[buckets_[next / items].matrix], next_row,
                                          std::min(next_row + item_rows, format_.rows)};
            run_few(buckets_[i / items], row, row_end, following, worker);
          }
        });
  }

 private:
  enum class Way { direct, panels, tiles };
  Way way_of(std::int64_t bucket) const {
    const std::int64_t size = buckets_[bucket].size;
    if (has_tiles_) return size > kVectorTokens ? Way::tiles : Way::direct;
    constexpr bool kHasPanels = HWY_ARCH_X86;  // lanes of Arm's products are others
    const std::int64_t fewest = has_nibble_panels(format_) ? kNibblePanelTokensAtLeast : kPanelTokensAtLeast;
    return kHasPanels && size >= fewest ? Way::panels : Way::direct;
  }

  // Into how many shares the tokens of a matrix go that meets panels: where there are fewer items than
  // threads.
  std::int64_t token_shares(std::int64_t items) const {
    std::int64_t blocks = 1;
    for (std::int64_t i = 0; i < buckets_.count(); ++i)
      if (way_of(i) == Way::panels)
        blocks = std::max(blocks, (buckets_[i].size + kPanelBlock - 1) / kPanelBlock);
    return std::min(blocks,
                    std::max<std::int64_t>(1, context_.pool().size() / std::max<std::int64_t>(items, 1)));
  }
  static Buckets::Bucket share_of(const Buckets::Bucket& bucket, std::int64_t share, std::int64_t shares) {
    const std::int64_t begin = bucket.size * share / shares;
    return {bucket.matrix, bucket.rows + begin, bucket.size * (share + 1) / shares - begin};
  }

  template <class Task>
  void for_each_row(std::int64_t rows, const Task& task) {
    if (rows * format_.columns <= kSerialColumns)
      task(0, rows, 0);
    else
      context_.pool().parallel_for(0, rows, 1, task);
  }

  void round_rows(std::int64_t rows) {
    const std::size_t columns = format_.columns;
    const std::size_t padded = columns + kQuad * to_size(format_.group_size);
    for_each_row(rows, [&](std::int64_t begin, std::int64_t end, int worker) {
      auto* row = reinterpret_cast<float*>(
          context_.worker_scratch(worker, padded * (sizeof(float) + sizeof(std::int16_t))));
      auto* integers = reinterpret_cast<std::int16_t*>(row + padded);
      for (std::int64_t r = begin; r < end; ++r) {
        load_row(row_at(op_.x, r), op_.x.dtype, columns, row);
        if (plainly_) round_plain_row(format_, row, plain_ + r * plain_bytes_);
        if (plainly_ && !has_tiles_ && has_nibble_panels(format_))
          order_for_nibbles(format_.columns, reinterpret_cast<std::int16_t*>(plain_ + r * plain_bytes_));
        if (!direct_) continue;
        if (by_bytes_)
          round_byte_row(format_, row, integers, x_ + r * row_bytes_);
        else
          with_codes(format_, [&]<class Codes>(const Codes&) {
            arrange_integers<Codes>(format_, row, integers, x_ + r * row_bytes_);
          });
      }
    });
  }

  void pack_tiles(std::byte* tiles) {
    tiles_ = tiles;
    first_tile_[0] = 0;
    for (std::int64_t i = 0; i < buckets_.count(); ++i)
      first_tile_[i + 1] =
          first_tile_[i] +
          (way_of(i) == Way::tiles ? to_int((buckets_[i].size + amx::kTokens - 1) / amx::kTokens) : 0);
    const PlainRowLayout layout(format_);
    for_each_row(first_tile_[buckets_.count()], [&](std::int64_t begin, std::int64_t end, int) {
      std::int64_t bucket =
          std::upper_bound(first_tile_, first_tile_ + buckets_.count() + 1, begin) - first_tile_ - 1;
      for (std::int64_t tile = begin; tile < end; ++tile) {
        while (first_tile_[bucket + 1] <= tile) ++bucket;
        const std::int64_t token = (tile - first_tile_[bucket]) * amx::kTokens;
        const std::int64_t count = std::min(amx::kTokens, buckets_[bucket].size - token);
        PlainRow rows[amx::kTokens];
        for (std::int64_t t = 0; t < count; ++t)
          rows[t] = layout.at(plain_ + buckets_[bucket].rows[token + t] / op_.x_share * plain_bytes_);
        const auto pack = buckets_[bucket].size <= amx::kFew ? amx::pack_few : amx::pack_many;
        pack(format_, rows, count, tiles_ + tile * amx::tile_bytes(format_));
      }
    });
  }

  // One operand times a few rows of x; results every kItemRows floats. `following` is what is read next.
  template <class Codes>
  void multiply_few(const WeightStreams& streams, const WeightStreams& following, const std::byte* const* x,
                    std::int64_t tokens, const WorkerScratch& scratch, float* results) const {
    for (std::int64_t i = 0; i < streams.length(); ++i) {
      const StreamRows now = streams[i];
      const StreamRows ahead = streams.ahead(i, following);
      QuadRows quad{
          {}, {}, now.matrix.values + format_.rows * format_.row_bytes, scratch.scales, scratch.biases};
      for (int s = 0; s < kQuad; ++s) {
        quad.rows[s] = now.values(s);
        quad.next[s] = ahead.values(s);
      }
      ahead.fetch_groups();
      read_quad_groups(format_, now.matrix, now.rows, scratch.line, scratch.scales, scratch.biases);
      const std::int64_t step = by_bytes_ ? arm::kTokens : kIntegerTokens;
      for (std::int64_t t = 0; t < tokens; t += step) {
        const std::int64_t count = std::min(step, tokens - t);
        HWY_ALIGN float sums[std::max(arm::kTokens, kIntegerTokens)][kQuad];
        if (by_bytes_)
          multiply_bytes(quad, x + t, count, sums[0]);
        else
          multiply_words<Codes>(quad, x + t, count, sums[0]);
        for (std::int64_t c = 0; c < count; ++c)
          for (int s = 0; s < kQuad; ++s)
            results[(t + c) * kItemRows + now.rows[s] - streams.row()] = sums[c][s];
      }
    }
  }

  template <class Codes>
  void multiply_words(const QuadRows& rows, const std::byte* const* x, std::int64_t count,
                      float* sums) const {
    constexpr decltype(&multiply_integers<Codes, 1>) kByCount[] = {
        multiply_integers<Codes, 1>, multiply_integers<Codes, 2>,
        multiply_integers<Codes, std::min(3, kIntegerTokens)>, multiply_integers<Codes, kIntegerTokens>};
    kByCount[count - 1](format_, rows, x, sums);
  }

  void multiply_bytes(const QuadRows& rows, const std::byte* const* x, std::int64_t count,
                      float* sums) const {
    const IntegerRowLayout layout(format_);
    arm::Row some[arm::kTokens];
    for (std::int64_t i = 0; i < count; ++i)
      some[i] = {x[i], reinterpret_cast<const float*>(x[i] + layout.scales_at),
                 reinterpret_cast<const float*>(x[i] + layout.sums_at)};
    arm::multiply({arm::available(context_.isa()), format_, rows.rows, rows.scales, rows.biases}, some, count,
                  sums, kQuad);
  }

  void run_few(const Buckets::Bucket& bucket, std::int64_t row, std::int64_t row_end,
               const WeightStreams& following, int worker) {
    const WorkerScratch scratch(format_, kFewTokens,
                                context_.worker_scratch(worker, WorkerScratch::bytes(format_, kFewTokens)));
    for (std::int64_t t = 0; t < bucket.size; t += kFewTokens) {
      const std::int64_t tokens = std::min(kFewTokens, bucket.size - t);
      const std::byte* x[kFewTokens];
      for (std::int64_t j = 0; j < tokens; ++j) x[j] = x_ + bucket.rows[t + j] / op_.x_share * row_bytes_;
      for (int i = 0; i < operands(); ++i) {
        const auto streams = [&](int operand_index) {
          return WeightStreams{format_, operand(operand_index)[bucket.matrix], row, row_end};
        };
        const WeightStreams next = i + 1 == operands() ? following : streams(i + 1);
        with_codes(format_, [&]<class Codes>(const Codes&) {
          multiply_few<Codes>(streams(i), next, x, tokens, scratch, scratch.results[i]);
        });
      }
      store(scratch, bucket.rows + t, tokens, row, row_end);
    }
  }

  void run_panels(const Buckets::Bucket& bucket, std::int64_t row, std::int64_t row_end, int worker) {
    const WorkerScratch scratch(format_, kPanelBlock,
                                context_.worker_scratch(worker, WorkerScratch::bytes(format_, kPanelBlock)));
    const PlainRowLayout layout(format_);
    for (std::int64_t t = 0; t < bucket.size; t += kPanelBlock) {
      const std::int64_t tokens = std::min(kPanelBlock, bucket.size - t);
      PlainRow x[kPanelBlock];
      for (std::int64_t j = 0; j < tokens; ++j)
        x[j] = layout.at(plain_ + bucket.rows[t + j] / op_.x_share * plain_bytes_);
      for (std::int64_t r = row; r < row_end; r += kPanelRows)
        for (int i = 0; i < operands(); ++i) {
          const Matrix matrix = operand(i)[bucket.matrix];
          const PanelSource source{format_, matrix, r};
          read_panel_groups(source, scratch.line, scratch.scales, scratch.biases);
          multiply_rows(source, {scratch.scales, scratch.biases}, {x, to_size(tokens)}, *scratch.panels,
                        scratch.results[i] + r - row, kItemRows);
        }
      store(scratch, bucket.rows + t, tokens, row, row_end);
    }
  }

  void run_tiles(std::int64_t index, std::int64_t row, std::int64_t row_end, int worker) {
    constexpr std::int64_t kTokens = amx::kMaxTiles * amx::kTokens;
    const Buckets::Bucket bucket = buckets_[index];
    const WorkerScratch scratch(format_, kTokens,
                                context_.worker_scratch(worker, WorkerScratch::bytes(format_, kTokens)));
    const amx::Session session(format_);
    const std::int64_t step = padded_groups(format_);
    for (std::int64_t t = 0; t < bucket.size; t += kTokens) {
      const std::int64_t tokens = std::min(kTokens, bucket.size - t);
      const std::int64_t tiles = (tokens + amx::kTokens - 1) / amx::kTokens;
      const std::byte* x = tiles_ + (first_tile_[index] + t / amx::kTokens) * amx::tile_bytes(format_);
      for (std::int64_t r = row; r < row_end; r += amx::kRows)
        for (int i = 0; i < operands(); ++i) {
          const Matrix matrix = operand(i)[bucket.matrix];
          for (std::int64_t j = 0; j < amx::kRows; ++j) {
            const std::int64_t from = std::min(r + j, format_.rows - 1);
            read_scales(matrix.scales + from * format_.scale_row_bytes, format_.scale_type, format_.groups(),
                        scratch.scales + j * step);
            read_scales(matrix.biases + from * format_.bias_row_bytes, format_.bias_type, format_.groups(),
                        scratch.biases + j * step);
          }
          const amx::Product product{format_,        matrix, r, scratch.scales,
                                     scratch.biases, step,   x, scratch.results[i] + r - row,
                                     kItemRows};
          if (bucket.size <= amx::kFew)
            amx::multiply_few(product, tokens, *scratch.tiles);
          else
            amx::multiply_many(product, tiles, *scratch.tiles);
        }
      store(scratch, bucket.rows + t, tokens, row, row_end);
    }
  }

  void store(const WorkerScratch& scratch, const std::int32_t* out_rows, std::int64_t tokens,
             std::int64_t row, std::int64_t row_end) const {
    for (std::int64_t t = 0; t < tokens; ++t) {
      float* result = scratch.results[0] + t * kItemRows;
      if (operands() == 2) silu_times(result, scratch.results[1] + t * kItemRows, row_end - row);
      auto* to = static_cast<std::byte*>(row_at(op_.out, out_rows[t])) +
                 row * static_cast<std::int64_t>(size_bytes(op_.out.dtype));
      store_row(result, to_size(row_end - row), to, op_.out.dtype);
    }
  }

  int operands() const { return op_.up.count() > 0 ? 2 : 1; }
  const Matrices& operand(int i) const { return i == 0 ? op_.w : op_.up; }

  Context& context_;
  const Linear& op_;
  const MatrixFormat& format_;
  std::int64_t out_rows_;
  std::int64_t row_bytes_ = 0;    // of rounded x
  std::int64_t plain_bytes_ = 0;  // of the same in the order of the columns
  std::byte* x_ = nullptr;
  std::byte* plain_ = nullptr;
  std::byte* tiles_ = nullptr;
  std::int32_t* first_tile_ = nullptr;  // of each bucket
  Buckets buckets_;
  bool has_tiles_ = false;
  bool direct_ = false;   // some bucket is multiplied directly
  bool plainly_ = false;  // some is not
  bool by_bytes_ = false;
};

void integer_linear(Context& context, const Linear& op) {
  IntegerRun(context, op).run();
}

}  // namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET
HWY_AFTER_NAMESPACE();

#endif
