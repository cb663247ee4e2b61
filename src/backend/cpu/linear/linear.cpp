// Products of activations with weights in any storage.
//
// x is converted to F32 once per call, in the layout of the weight's format. Output rows are grouped by the
// matrix they use, so a matrix is read once however many rows share it. Work items are (matrix, block of
// weight rows), distributed dynamically over the threads. A few rows of x are multiplied directly with the
// packed weights (limited by reading them: N*K*bits/8 plus scales and biases); more rows use a panel of
// unpacked weights in the first-level cache and blocks of x in the second-level cache (limited by FMA:
// 2*T*N*K operations). F32 throughout: relative error about 1e-6.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/linear/linear.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <algorithm>

#include "backend/cpu/linear/buckets.h"
#include "backend/cpu/linear/f32_tile-inl.h"
#include "backend/cpu/linear/integer/product.h"
#include "backend/cpu/linear/linear.h"
#include "backend/cpu/linear/weight_streams.h"
#include "backend/cpu/runtime/row_walk.h"
#include "backend/cpu/simd/activation-inl.h"
#include "base/integer_cast.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::linear::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;

constexpr std::int64_t kItemRows = 256;  // weight rows per work item, a multiple of kPanelRows and kLanes
constexpr std::int64_t kXBlockBytes = 1 << 20;  // x rows that should stay in the second-level cache
constexpr std::int64_t kMaxBlockTokens = 96;

// One weight field of a call, with x in its layout.
struct Operand {
  const Matrices* matrices = nullptr;
  XLayout layout;
  const float* x = nullptr;
};

// The floats in a worker's scratch block, in order.
struct WorkerPlan {
  std::int64_t groups;  // of one row, followed by a vector of padding
  std::int64_t block_tokens;
  std::int64_t panel_floats() const { return kPanelRows * std::max(kPanelElements, 32 * kLanes); }
  std::int64_t acc_floats() const { return block_tokens * kPanelRows * kLanes; }
  std::int64_t result_floats() const { return block_tokens * kItemRows; }
  std::int64_t floats() const {
    return 2 * kPanelRows * groups + panel_floats() + acc_floats() + 2 * result_floats();
  }
};

struct WorkerScratch {
  std::int64_t group_step;
  float* scales;
  float* biases;
  float* panel;
  float* acc;
  float* results[2];
  WorkerScratch(const WorkerPlan& plan, std::byte* block)
      : group_step(plan.groups),
        scales(reinterpret_cast<float*>(block)),
        biases(scales + kPanelRows * plan.groups),
        panel(biases + kPanelRows * plan.groups),
        acc(panel + plan.panel_floats()),
        results{acc + plan.acc_floats(), acc + plan.acc_floats() + plan.result_floats()} {}
  // Scales and biases of row `row` among those that are multiplied together.
  float* scales_of(std::int64_t row) const { return scales + row * group_step; }
  float* biases_of(std::int64_t row) const { return biases + row * group_step; }
  RowGroups groups() const { return {scales, biases, group_step}; }
};

// The addresses of rows [row, row + R); past the matrix's end its last row is repeated.
template <int R>
HWY_INLINE void row_addresses(const MatrixFormat& format, const Matrix& matrix, std::int64_t row,
                              std::int64_t end, const std::byte* (&rows)[R]) {
  for (int r = 0; r < R; ++r) rows[r] = matrix.values + std::min(row + r, end - 1) * format.row_bytes;
}

// For up to kDirectTokens rows of x.
template <class Format>
void multiply_few(const WeightStreams& streams, const WeightStreams& following, const float* const* x,
                  std::int64_t tokens, const WorkerScratch& scratch, float* results) {
  auto multiply = multiply_direct<Format, 1>;
  if constexpr (kDirectTokens<Format> == kTileTokens) {
    if (tokens == 2) multiply = multiply_direct<Format, 2>;
    if (tokens == 3) multiply = multiply_direct<Format, 3>;
  }
  const MatrixFormat& format = streams.format();
  for (std::int64_t i = 0; i < streams.length(); ++i) {
    const StreamRows now = streams[i];
    const StreamRows ahead = streams.ahead(i, following);
    DirectRows from{{}, {}, scratch.groups()};
    for (int r = 0; r < kDirectRows; ++r) {
      from.rows[r] = now.values(r);
      from.next[r] = ahead.values(r);
      read_groups<Format>(format, now.matrix, now.rows[r], scratch.scales_of(r), scratch.biases_of(r));
    }
    if constexpr (Format::kScaled) ahead.fetch_groups();
    float sums[kTileTokens][kDirectRows];
    multiply(format, from, x, sums[0]);
    for (std::int64_t t = 0; t < tokens; ++t)
      for (int r = 0; r < kDirectRows; ++r) results[t * kItemRows + now.rows[r] - streams.row()] = sums[t][r];
  }
}

// For any number of rows of x.
template <class Format>
void multiply_many(const WeightStreams& streams, const WeightStreams&, const float* const* x,
                   std::int64_t tokens, const WorkerScratch& scratch, float* results) {
  const MatrixFormat& format = streams.format();
  const Matrix& matrix = streams.matrix();
  const std::int64_t begin = streams.row();
  const Panel panel{GroupSpread(format, Format::kSlots), Format::kSlots, scratch.panel, scratch.groups()};
  const std::int64_t chunks = chunk_count<Format>(format.columns);
  const std::int64_t panel_chunks = std::max<std::int64_t>(1, kPanelElements / chunk_elements<Format>());
  const std::int64_t slots_floats = x_layout<Format>(format).slots_floats;
  for (std::int64_t row = begin; row < streams.row_end(); row += kPanelRows) {
    const std::byte* rows[kPanelRows];
    row_addresses(format, matrix, row, format.rows, rows);
    for (int r = 0; r < kPanelRows; ++r)
      read_groups<Format>(format, matrix, std::min(row + r, format.rows - 1), scratch.scales_of(r),
                          scratch.biases_of(r));
    std::memset(scratch.acc, 0, to_size(tokens * kPanelRows * kLanes) * sizeof(float));
    for (std::int64_t chunk = 0; chunk < chunks; chunk += panel_chunks) {
      const std::int64_t chunk_end = std::min(chunks, chunk + panel_chunks);
      fill_panel<Format>(format, rows, chunk, chunk_end, scratch.panel);
      for (std::int64_t t = 0; t < tokens; t += kTileTokens) {
        const std::int64_t count = std::min<std::int64_t>(kTileTokens, tokens - t);
        const auto multiply = count == 1   ? multiply_panel<Format::kScaled, 1>
                              : count == 2 ? multiply_panel<Format::kScaled, 2>
                                           : multiply_panel<Format::kScaled, kTileTokens>;
        multiply(panel, x + t, chunk, chunk_end, scratch.acc + t * kPanelRows * kLanes);
      }
    }
    for (std::int64_t t = 0; t < tokens; ++t)
      for (std::int64_t r = 0; r < kPanelRows; ++r)
        results[t * kItemRows + row - begin + r] =
            finish<Format>(hn::LoadU(FloatTag(), scratch.acc + (t * kPanelRows + r) * kLanes),
                           scratch.biases_of(r), x[t] + slots_floats, format.groups());
  }
}

// Multiplies some rows of a weight by rows of x; `following` are the rows that are read next.
void multiply(const WeightStreams& streams, const WeightStreams& following, const float* const* x,
              std::int64_t tokens, const WorkerScratch& scratch, float* results) {
  with_format(streams.format().storage, [&]<class Format>(const Format&) {
    const auto by_count = tokens <= kDirectTokens<Format> ? multiply_few<Format> : multiply_many<Format>;
    by_count(streams, following, x, tokens, scratch, results);
  });
}

class LinearRun {
 public:
  LinearRun(Context& context, const Linear& op) : context_(context), op_(op), rows_(row_count(op.out.shape)) {
    operands_[0].matrices = &op.w;
    operands_[1].matrices = &op.up;
    operand_count_ = op.up.count() > 0 ? 2 : 1;
    prepare();
  }

  void run() {
    const std::int64_t outputs = op_.w.format().rows;
    const std::int64_t wanted_items = context_.pool().size() * 8;
    const std::int64_t all_rows = outputs * buckets_.count();
    item_rows_ =
        std::clamp<std::int64_t>(round_up(all_rows / wanted_items, kPanelRows), kPanelRows, kItemRows);
    const std::int64_t items = (outputs + item_rows_ - 1) / item_rows_;
    const std::int64_t last = items * buckets_.count() - 1;
    const auto item = [&](std::int64_t i) { return Item{buckets_[i / items], i % items * item_rows_}; };
    context_.pool().parallel_for_dynamic(0, last + 1, 1,
                                         [&](std::int64_t begin, std::int64_t end, int worker) {
                                           for (std::int64_t i = begin; i < end; ++i)
                                             run_item(item(i), item(std::min(i + 1, last)), worker);
                                         });
  }

 private:
  // Fills one block of shared scratch: x for each operand, then the buckets.
  void prepare() {
    const std::int64_t x_rows = row_count(op_.x.shape);
    const bool same = operand_count_ == 2 && op_.w.format().storage == op_.up.format().storage &&
                      op_.w.format().group_size == op_.up.format().group_size;
    const int layouts = same ? 1 : operand_count_;
    std::int64_t floats = 0;
    for (int i = 0; i < operand_count_; ++i) {
      Operand& operand = operands_[i];
      const MatrixFormat& format = operand.matrices->format();
      with_format(format.storage,
                  [&]<class Format>(const Format&) { operand.layout = x_layout<Format>(format); });
      if (i < layouts) floats += x_rows * operand.layout.row_floats;
      plan_.groups = std::max(plan_.groups, padded_groups(format) + kLanes);
    }
    plan_.block_tokens = std::clamp<std::int64_t>(
        kXBlockBytes / (operands_[0].layout.row_floats * 4) / kTileTokens * kTileTokens, 4 * kTileTokens,
        kMaxBlockTokens);
    std::byte* block =
        context_.shared_scratch(to_size(floats) * sizeof(float) + Buckets::bytes(rows_, op_.w.count()));
    auto* x = reinterpret_cast<float*>(block);
    for (int i = 0; i < operand_count_; ++i) {
      operands_[i].x = i < layouts ? x : operands_[0].x;
      if (i < layouts) arrange(operands_[i], x);
      x += i < layouts ? x_rows * operands_[i].layout.row_floats : 0;
    }
    buckets_ = Buckets(op_.experts, rows_, op_.w.count(), reinterpret_cast<std::byte*>(x));
  }

  void arrange(const Operand& operand, float* to) {
    const MatrixFormat& format = operand.matrices->format();
    const std::int64_t padded = operand.layout.slots_floats;
    const std::size_t columns = format.columns;
    const auto some_rows = [&](std::int64_t begin, std::int64_t end, int worker) {
      auto* row = reinterpret_cast<float*>(context_.worker_scratch(worker, to_size(padded) * sizeof(float)));
      std::fill(row + columns, row + padded, 0.0f);
      for (std::int64_t r = begin; r < end; ++r) {
        load_row(row_at(op_.x, r), op_.x.dtype, columns, row);
        with_format(format.storage, [&]<class Format>(const Format&) {
          arrange_x<Format>(format, row, to + r * operand.layout.row_floats);
        });
      }
    };
    const std::int64_t rows = row_count(op_.x.shape);
    if (rows <= kTileTokens)
      some_rows(0, rows, 0);  // cheaper than waking the pool
    else
      context_.pool().parallel_for(0, rows, 1, some_rows);
  }

  // Weight rows of a bucket's matrix, from `row` on.
  struct Item {
    Buckets::Bucket bucket;
    std::int64_t row;
  };

  std::int64_t end_of(const Item& item) const { return std::min(item.row + item_rows_, op_.w.format().rows); }
  WeightStreams streams(int operand, const Item& item) const {
    const Matrices& matrices = *operands_[operand].matrices;
    return {matrices.format(), matrices[item.bucket.matrix], item.row, end_of(item)};
  }

  // A worker's items are consecutive.
  void run_item(const Item& item, const Item& following, int worker) {
    const auto& [bucket, row] = item;
    const std::int64_t row_end = end_of(item);
    const WorkerScratch scratch(plan_,
                                context_.worker_scratch(worker, to_size(plan_.floats()) * sizeof(float)));
    for (std::int64_t t = 0; t < bucket.size; t += plan_.block_tokens) {
      const std::int64_t tokens = std::min(plan_.block_tokens, bucket.size - t);
      const std::int32_t* out_rows = bucket.rows + t;
      for (int i = 0; i < operand_count_; ++i) {
        const Operand& operand = operands_[i];
        const float* x[kMaxBlockTokens];
        for (std::int64_t j = 0; j < tokens; ++j)
          x[j] = operand.x + out_rows[j] / op_.x_share * operand.layout.row_floats;
        const WeightStreams next = i + 1 == operand_count_ ? streams(0, following) : streams(i + 1, item);
        multiply(streams(i, item), next, x, tokens, scratch, scratch.results[i]);
      }
      for (std::int64_t j = 0; j < tokens; ++j) {
        float* result = scratch.results[0] + j * kItemRows;
        if (operand_count_ == 2) silu_times(result, scratch.results[1] + j * kItemRows, kItemRows);
        auto* to = static_cast<std::byte*>(row_at(op_.out, out_rows[j])) +
                   row * static_cast<std::int64_t>(size_bytes(op_.out.dtype));
        store_row(result, to_size(row_end - row), to, op_.out.dtype);
      }
    }
  }

  Context& context_;
  const Linear& op_;
  std::int64_t rows_;
  std::int64_t item_rows_ = kItemRows;
  int operand_count_ = 1;
  Operand operands_[2];
  WorkerPlan plan_{};
  Buckets buckets_;
};

void linear(Context& context, const Linear& op) {
  LinearRun(context, op).run();
}

}  // namespace sluice::backend::cpu::linear::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu::linear {

HWY_EXPORT(linear);

namespace {

bool is_rounded(const Context& context, const Linear& op) {
  return !context.exact() && integer::has_integer_product(op);
}

}  // namespace

void run_linear(Context& context, const Linear& op) {
  if (is_rounded(context, op)) return integer::run_integer_linears(context, {&op, 1});
  SLUICE_DISPATCH(context, linear)(context, op);
}

void run_linears(Context& context, std::span<Linear> all) {
  const auto others =
      std::partition(all.begin(), all.end(), [&](const Linear& op) { return is_rounded(context, op); });
  if (others != all.begin()) integer::run_integer_linears(context, {all.begin(), others});
  for (const Linear& op : std::span(others, all.end())) SLUICE_DISPATCH(context, linear)(context, op);
}

}  // namespace sluice::backend::cpu::linear
#endif
