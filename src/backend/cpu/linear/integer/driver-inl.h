// The driver of the integer products: which rows of x are multiplied by which matrix, and by which worker.
//
// Rows of x are rounded once for all products of a call. If many rows share a matrix, they are packed as
// tiles of sixteen tokens for AMX, or multiplied by panels of unpacked weights; otherwise each weight row is
// multiplied by a few of them at a time, with byte products if an Arm processor has them. Limited by reading
// the weights for few tokens, by 2*T*N*K integer operations for many.
#if defined(SLUICE_BACKEND_CPU_INTEGER_DRIVER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_INTEGER_DRIVER_INL_H_
#undef SLUICE_BACKEND_CPU_INTEGER_DRIVER_INL_H_
#else
#define SLUICE_BACKEND_CPU_INTEGER_DRIVER_INL_H_
#endif

#include <algorithm>
#include <array>
#include <span>

#include "backend/cpu/linear/buckets.h"
#include "backend/cpu/linear/integer/panel-inl.h"
#include "backend/cpu/linear/integer/rounded_rows-inl.h"
#include "backend/cpu/linear/weight_streams.h"
#include "base/integer_cast.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET {

constexpr std::int64_t kItemRows = 256;       // maximum weight rows per work item
constexpr std::int64_t kItemBytes = 1 << 14;  // bytes of weights at least: distributing work takes time too
constexpr std::int64_t kFewTokens = 64;       // rows of x that are multiplied directly and stay in the caches
// Rows per matrix up to which unpacking a row each time is faster than storing it for tiles or panels.
constexpr std::int64_t kVectorTokens = 4;
// From this number on, panels of 4-bit codes are not slower than reading the codes for a few tokens at a
// time.
constexpr std::int64_t kNibblePanelTokensAtLeast = kBytePanels ? 6 : 8;
// The same for panels whose codes are unpacked row by row; with VNNI a product takes less time than
// unpacking.
constexpr std::int64_t kPanelTokensAtLeast = kHasVnni ? 24 : 9;
constexpr std::int64_t kSerialColumns = 1 << 14;  // columns of x rounded faster than the pool wakes up

template <class Task>
void for_each_row(Context& context, std::int64_t rows, std::int64_t columns, const Task& task) {
  if (rows * columns <= kSerialColumns)
    task(0, rows, 0);
  else
    context.pool().parallel_for(0, rows, 1, task);
}

// A worker's scratch block, in this order.
class WorkerScratch {
 public:
  float* scales;
  float* biases;
  float* line;  // groups of some rows, before they are interleaved
  float* results[2];
  amx::Scratch* tiles;  // one of these two
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

// One product of a call. Its tasks are row ranges of its matrices.
class IntegerProduct {
 public:
  IntegerProduct() = default;
  IntegerProduct(Context& context, const Linear& op, RoundedRows& x)
      : context_(&context), op_(&op), x_(&x), out_rows_(row_count(op.out.shape)) {}

  std::size_t bytes() const {
    return tile_parts() * to_size(amx::tile_bytes(format())) +
           (starts_bytes() + Buckets::bytes(out_rows_, op_->w.count()) + 63) / 64 * 64;
  }
  void place(std::byte* scratch) {
    tiles_ = scratch;
    scratch += tile_parts() * to_size(amx::tile_bytes(format()));
    first_tile_ = reinterpret_cast<std::int32_t*>(scratch);
    buckets_ = Buckets(op_->experts, out_rows_, op_->w.count(), scratch + starts_bytes());
    bool direct = false;
    for (std::int64_t i = 0; i < buckets_.count(); ++i) (way_of(i) == Way::direct ? direct : plainly_) = true;
    x_->want(direct, plainly_);
    cut();
  }

  // To be called once x is rounded.
  void prepare() {
    if (x_->has_tiles() && plainly_) pack_tiles();
  }

  std::int64_t tasks() const { return all_items_ * shares_; }
  // `next` is the product whose tasks come next.
  void run(std::int64_t task, const IntegerProduct* next, int worker) const {
    const std::int64_t i = task / shares_;
    const Item item = item_at(i);
    const Way way = way_of(item.bucket);
    const Buckets::Bucket bucket = buckets_[item.bucket];
    if (way == Way::panels) return run_panels(share_of(bucket, task % shares_, shares_), item, worker);
    if (task % shares_ > 0) return;
    if (way == Way::tiles) return run_tiles(item, worker);
    // A worker's items are consecutive.
    const bool last = i + 1 == all_items_;
    const WeightStreams following = !last             ? streams(item_at(i + 1), 0)
                                    : next != nullptr ? next->streams(next->item_at(0), 0)
                                                      : streams(item, 0);
    run_few(item, following, worker);
  }

 private:
  enum class Way { direct, panels, tiles };
  Way way_of(std::int64_t bucket) const {
    const std::int64_t size = buckets_[bucket].size;
    if (x_->has_tiles()) return size > kVectorTokens ? Way::tiles : Way::direct;
    constexpr bool kHasPanels = HWY_ARCH_X86;  // products on Arm have another lane order
    const std::int64_t fewest = has_nibble_panels(format()) ? kNibblePanelTokensAtLeast : kPanelTokensAtLeast;
    return kHasPanels && size >= fewest ? Way::panels : Way::direct;
  }

  // Rows [row, row_end) of a bucket's matrix.
  struct Item {
    std::int64_t bucket;
    std::int64_t row;
    std::int64_t row_end;
  };
  Item item_at(std::int64_t i) const {
    const std::int64_t row = i % items_ * item_rows_;
    return {i / items_, row, std::min(row + item_rows_, format().rows)};
  }
  WeightStreams streams(const Item& item, int operand_index) const {
    return {format(), operand(operand_index)[buckets_[item.bucket].matrix], item.row, item.row_end};
  }

  void cut() {
    const std::int64_t step = !plainly_ ? kQuad : x_->has_tiles() ? amx::kRows : kPanelRows;
    const std::int64_t wanted_items = context_->pool().size() * 8;
    const std::int64_t fewest = kItemBytes / (operands() * format().row_bytes);
    item_rows_ = std::clamp<std::int64_t>(
        round_up(std::max(format().rows * buckets_.count() / wanted_items, fewest), step), step, kItemRows);
    items_ = (format().rows + item_rows_ - 1) / item_rows_;
    all_items_ = items_ * buckets_.count();
    shares_ = token_shares(all_items_);
  }

  // Each bucket may leave part of one tile unused.
  std::size_t tile_parts() const {
    return x_->has_tiles() ? to_size(out_rows_ / amx::kTokens + std::min(out_rows_, op_->w.count())) : 0;
  }
  std::size_t starts_bytes() const { return to_size(op_->w.count() + 1) * sizeof(std::int32_t); }

  // The number of shares into which the tokens of a matrix with panels are divided if there are fewer items
  // than threads.
  std::int64_t token_shares(std::int64_t items) const {
    std::int64_t blocks = 1;
    for (std::int64_t i = 0; i < buckets_.count(); ++i)
      if (way_of(i) == Way::panels)
        blocks = std::max(blocks, (buckets_[i].size + kPanelBlock - 1) / kPanelBlock);
    return std::min(blocks,
                    std::max<std::int64_t>(1, context_->pool().size() / std::max<std::int64_t>(items, 1)));
  }
  static Buckets::Bucket share_of(const Buckets::Bucket& bucket, std::int64_t share, std::int64_t shares) {
    const std::int64_t begin = bucket.size * share / shares;
    return {bucket.matrix, bucket.rows + begin, bucket.size * (share + 1) / shares - begin};
  }

  void pack_tiles() {
    first_tile_[0] = 0;
    for (std::int64_t i = 0; i < buckets_.count(); ++i)
      first_tile_[i + 1] =
          first_tile_[i] +
          (way_of(i) == Way::tiles ? to_int((buckets_[i].size + amx::kTokens - 1) / amx::kTokens) : 0);
    for_each_row(*context_, first_tile_[buckets_.count()], format().columns,
                 [&](std::int64_t begin, std::int64_t end, int) {
                   std::int64_t bucket =
                       std::upper_bound(first_tile_, first_tile_ + buckets_.count() + 1, begin) -
                       first_tile_ - 1;
                   for (std::int64_t tile = begin; tile < end; ++tile) {
                     while (first_tile_[bucket + 1] <= tile) ++bucket;
                     const std::int64_t token = (tile - first_tile_[bucket]) * amx::kTokens;
                     const std::int64_t count = std::min(amx::kTokens, buckets_[bucket].size - token);
                     PlainRow rows[amx::kTokens];
                     for (std::int64_t t = 0; t < count; ++t)
                       rows[t] = x_->plain(buckets_[bucket].rows[token + t] / op_->x_share);
                     const auto pack = buckets_[bucket].size <= amx::kFew ? amx::pack_few : amx::pack_many;
                     pack(format(), rows, count, tiles_ + tile * amx::tile_bytes(format()));
                   }
                 });
  }

  // One operand times a few rows of x, with results every kItemRows floats. `following` is read next.
  void multiply_few(const WeightStreams& streams, const WeightStreams& following, const std::byte* const* x,
                    std::int64_t tokens, const WorkerScratch& scratch, float* results) const {
    const DirectProduct& product = direct_product(format());
    for (std::int64_t i = 0; i < streams.length(); ++i) {
      const StreamRows now = streams[i];
      const StreamRows ahead = streams.ahead(i, following);
      QuadRows quad{
          {}, {}, now.matrix.values + format().rows * format().row_bytes, scratch.scales, scratch.biases};
      for (int s = 0; s < kQuad; ++s) {
        quad.rows[s] = now.values(s);
        quad.next[s] = ahead.values(s);
      }
      ahead.fetch_groups();
      read_quad_groups(format(), now.matrix, now.rows, scratch.line, scratch.scales, scratch.biases);
      const std::int64_t step = x_->by_bytes() ? arm::kTokens : kIntegerTokens;
      for (std::int64_t t = 0; t < tokens; t += step) {
        const std::int64_t count = std::min(step, tokens - t);
        HWY_ALIGN float sums[std::max(arm::kTokens, kIntegerTokens)][kQuad];
        if (x_->by_bytes())
          multiply_bytes(quad, x + t, count, sums[0]);
        else
          product.multiply[count - 1](format(), quad, x + t, sums[0]);
        for (std::int64_t c = 0; c < count; ++c)
          for (int s = 0; s < kQuad; ++s)
            results[(t + c) * kItemRows + now.rows[s] - streams.row()] = sums[c][s];
      }
    }
  }

  void multiply_bytes(const QuadRows& rows, const std::byte* const* x, std::int64_t count,
                      float* sums) const {
    const IntegerRowLayout layout(format());
    arm::Row some[arm::kTokens];
    for (std::int64_t i = 0; i < count; ++i)
      some[i] = {x[i], reinterpret_cast<const float*>(x[i] + layout.scales_at),
                 reinterpret_cast<const float*>(x[i] + layout.sums_at)};
    arm::multiply({arm::available(context_->isa()), format(), rows.rows, rows.scales, rows.biases}, some,
                  count, sums, kQuad);
  }

  void run_few(const Item& item, const WeightStreams& following, int worker) const {
    const Buckets::Bucket bucket = buckets_[item.bucket];
    const WorkerScratch scratch(format(), kFewTokens,
                                context_->worker_scratch(worker, WorkerScratch::bytes(format(), kFewTokens)));
    for (std::int64_t t = 0; t < bucket.size; t += kFewTokens) {
      const std::int64_t tokens = std::min(kFewTokens, bucket.size - t);
      const std::byte* x[kFewTokens];
      for (std::int64_t j = 0; j < tokens; ++j) x[j] = x_->direct(bucket.rows[t + j] / op_->x_share);
      for (int i = 0; i < operands(); ++i) {
        const WeightStreams next = i + 1 == operands() ? following : streams(item, i + 1);
        multiply_few(streams(item, i), next, x, tokens, scratch, scratch.results[i]);
      }
      store(scratch, bucket.rows + t, tokens, item);
    }
  }

  void run_panels(const Buckets::Bucket& bucket, const Item& item, int worker) const {
    const WorkerScratch scratch(
        format(), kPanelBlock, context_->worker_scratch(worker, WorkerScratch::bytes(format(), kPanelBlock)));
    for (std::int64_t t = 0; t < bucket.size; t += kPanelBlock) {
      const std::int64_t tokens = std::min(kPanelBlock, bucket.size - t);
      PlainRow x[kPanelBlock];
      for (std::int64_t j = 0; j < tokens; ++j) x[j] = x_->plain(bucket.rows[t + j] / op_->x_share);
      for (std::int64_t r = item.row; r < item.row_end; r += kPanelRows)
        for (int i = 0; i < operands(); ++i) {
          const Matrix matrix = operand(i)[bucket.matrix];
          const PanelSource source{format(), matrix, r};
          read_panel_groups(source, scratch.line, scratch.scales, scratch.biases);
          multiply_rows(source, {scratch.scales, scratch.biases}, {x, to_size(tokens)}, *scratch.panels,
                        scratch.results[i] + r - item.row, kItemRows);
        }
      store(scratch, bucket.rows + t, tokens, item);
    }
  }

  void run_tiles(const Item& item, int worker) const {
    constexpr std::int64_t kTokens = amx::kMaxTiles * amx::kTokens;
    const Buckets::Bucket bucket = buckets_[item.bucket];
    const WorkerScratch scratch(format(), kTokens,
                                context_->worker_scratch(worker, WorkerScratch::bytes(format(), kTokens)));
    const amx::Session session(format());
    const std::int64_t step = padded_groups(format());
    for (std::int64_t t = 0; t < bucket.size; t += kTokens) {
      const std::int64_t tokens = std::min(kTokens, bucket.size - t);
      const std::int64_t tiles = (tokens + amx::kTokens - 1) / amx::kTokens;
      const std::byte* x = tiles_ + (first_tile_[item.bucket] + t / amx::kTokens) * amx::tile_bytes(format());
      for (std::int64_t r = item.row; r < item.row_end; r += amx::kRows)
        for (int i = 0; i < operands(); ++i) {
          const Matrix matrix = operand(i)[bucket.matrix];
          for (std::int64_t j = 0; j < amx::kRows; ++j) {
            const std::int64_t from = std::min(r + j, format().rows - 1);
            read_scales(matrix.scales + from * format().scale_row_bytes, format().scale_type,
                        format().groups(), scratch.scales + j * step);
            read_scales(matrix.biases + from * format().bias_row_bytes, format().bias_type, format().groups(),
                        scratch.biases + j * step);
          }
          const amx::Product product{format(),       matrix, r, scratch.scales,
                                     scratch.biases, step,   x, scratch.results[i] + r - item.row,
                                     kItemRows};
          if (bucket.size <= amx::kFew)
            amx::multiply_few(product, tokens, *scratch.tiles);
          else
            amx::multiply_many(product, tiles, *scratch.tiles);
        }
      store(scratch, bucket.rows + t, tokens, item);
    }
  }

  void store(const WorkerScratch& scratch, const std::int32_t* out_rows, std::int64_t tokens,
             const Item& item) const {
    for (std::int64_t t = 0; t < tokens; ++t) {
      float* result = scratch.results[0] + t * kItemRows;
      if (operands() == 2) silu_times(result, scratch.results[1] + t * kItemRows, item.row_end - item.row);
      auto* to = static_cast<std::byte*>(row_at(op_->out, out_rows[t])) +
                 item.row * static_cast<std::int64_t>(size_bytes(op_->out.dtype));
      store_row(result, to_size(item.row_end - item.row), to, op_->out.dtype);
    }
  }

  int operands() const { return op_->up.count() > 0 ? 2 : 1; }
  const Matrices& operand(int i) const { return i == 0 ? op_->w : op_->up; }

  const MatrixFormat& format() const { return op_->w.format(); }

  Context* context_ = nullptr;
  const Linear* op_ = nullptr;
  RoundedRows* x_ = nullptr;
  std::int64_t out_rows_ = 0;
  std::byte* tiles_ = nullptr;
  std::int32_t* first_tile_ = nullptr;  // of each bucket
  Buckets buckets_;
  bool plainly_ = false;        // some bucket is not multiplied directly
  std::int64_t item_rows_ = 1;  // per matrix
  std::int64_t items_ = 0;      // per bucket
  std::int64_t all_items_ = 0;
  std::int64_t shares_ = 1;  // of an item's tokens
};

// The products of a call: common inputs are rounded once, and all tasks are one parallel loop.
class IntegerRun {
 public:
  IntegerRun(Context& context, std::span<const Linear> ops) : context_(context) {
    std::size_t bytes = 0;
    for (const Linear& op : ops) {
      RoundedRows& x = rows_for(op);
      bytes += (products_[products_count_++] = IntegerProduct(context, op, x)).bytes();
    }
    for (const RoundedRows& x : rows()) bytes += x.bytes();
    std::byte* scratch = context.shared_scratch(bytes);
    for (RoundedRows& x : rows()) {
      x.place(scratch);
      scratch += x.bytes();
    }
    for (IntegerProduct& product : products()) {
      product.place(scratch);
      scratch += product.bytes();
    }
    for (const RoundedRows& x : rows())
      for_each_row(context, x.rows(), x.columns(), [&](std::int64_t begin, std::int64_t end, int worker) {
        x.round(context, begin, end, worker);
      });
    for (IntegerProduct& product : products()) product.prepare();
  }

  void run() {
    std::int64_t tasks = 0;
    for (const IntegerProduct& product : products()) tasks += product.tasks();
    context_.pool().parallel_for_dynamic(0, tasks, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
      for (std::int64_t task = begin; task < end; ++task) {
        const IntegerProduct* product = products_.data();
        std::int64_t of_product = task;
        for (; of_product >= product->tasks(); ++product) of_product -= product->tasks();
        const bool last = product + 1 == products_.data() + products_count_;
        product->run(of_product, last ? nullptr : product + 1, worker);
      }
    });
  }

 private:
  RoundedRows& rows_for(const Linear& op) {
    for (RoundedRows& x : rows())
      if (x.serve(op)) return x;
    return rows_[rows_count_++] = RoundedRows(context_.isa(), op);
  }
  std::span<RoundedRows> rows() { return std::span(rows_).first(rows_count_); }
  std::span<IntegerProduct> products() { return std::span(products_).first(products_count_); }

  Context& context_;
  std::array<RoundedRows, kMostTogether> rows_;
  std::array<IntegerProduct, kMostTogether> products_;
  std::size_t rows_count_ = 0;
  std::size_t products_count_ = 0;
};

void integer_linears(Context& context, std::span<const Linear> ops) {
  IntegerRun(context, ops).run();
}

}  // namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET
HWY_AFTER_NAMESPACE();

#endif
