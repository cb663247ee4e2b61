// out = softmax(scale * q . keys) values, for each query over the rows it sees.
//
// The queries of one sequence and KV head (tokens x heads that share it) form tiles. A tile iterates over the
// cache in parts of kPartRows rows counted from row 0, and its queries share one read of each row. Threads
// compute whole tiles if there are enough of them (prompts), otherwise parts of tiles, whose partial results
// are merged afterwards in the same order (decode): the bits are the same. BF16 caches are multiplied in BF16
// if the processor can (bf16_products.h). Bytes: every visible cache row once per tile. Products and sums are
// F32 or as good (amx_bf16.h); the relative L2 error is below 1e-5 with F32 activations. Unless the backend
// is exact, BF16 products round F32 queries to 2^-18 and, for BF16 queries, weights to BF16, whose total is
// that of the rounded ones.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/attention/attend.cpp"
#include "backend/cpu/attention/attend.h"

#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <bit>

#include "backend/cpu/attention/bf16_tile-inl.h"
#include "base/integer_cast.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::attention::HWY_NAMESPACE {

constexpr std::int64_t kPartRows = 512;
constexpr std::int64_t kMaxTileQueries = 128;
constexpr std::int64_t kMaxUnitQueries = 64;
constexpr std::int64_t kMaxTogether = 4;
constexpr std::size_t kTileFloats = std::size_t{1} << 18;    // of scratch per tile, to fit into the L2 cache
constexpr std::size_t kPartialBytes = std::size_t{1} << 26;  // partial results in memory at a time

// Some queries of one sequence and KV head; query r of these is head r % group of token r / group.
struct Tile {
  std::int64_t sequence;
  std::int64_t kv_head;
  std::int64_t first_query;
  std::int64_t queries;
  std::int64_t first_part;
  std::int64_t parts;
};

class Attend {
 public:
  Attend(Context& context, const AttendCall& call, const ops::Sequences& sequences)
      : context_(context),
        call_(call),
        sequences_(sequences),
        kv_heads_(call.values.dim(call.values.rank() - 2)),
        group_(call.out.dim(1) / kv_heads_),
        value_floats_(padded(to_size(call.values.shape.back()))),
        products_(suitable_products(context.isa(), call)) {
    for (int p = 0; p < call.pieces; ++p) {
      bf16_ = bf16_ && call.queries[p].dtype == ops::DType::bf16;
      piece_offset_[p] = query_floats_;
      query_floats_ += padded(to_size(call.keys[p].shape.back()));
    }
    const std::int64_t fitting = kTileFloats / (query_floats_ + 2 * value_floats_);
    tile_queries_ = std::clamp<std::int64_t>(fitting / 8 * 8, 8,
                                             products_ != nullptr ? kMaxUnitQueries : kMaxTileQueries);
    std::int64_t most = 0;
    for (std::int64_t b = 0; b < sequences.count(); ++b)
      most = std::max(most, sequences[b].tokens() * group_);
    tile_queries_ = std::min(tile_queries_, (most + 7) / 8 * 8);
  }

  void run() {
    std::int64_t tiles = 0;
    for (std::int64_t b = 0; b < sequences_.count(); ++b) tiles += tiles_of(b);
    std::int64_t longest = 0;
    std::int64_t parts = 0;
    for (std::int64_t i = 0; i < tiles; ++i) {
      const std::int64_t own = tile(i).parts;
      longest = std::max(longest, own);
      parts += own;
    }
    // Whole tiles keep every thread busy if the longest is short compared with a thread's share.
    if (2 * longest * context_.pool().size() <= parts || longest <= 1)
      run_tiles(tiles);
    else
      run_parts(tiles, longest);
  }

 private:
  // Null: F32 throughout.
  static const AttendProducts* suitable_products(Isa isa, const AttendCall& call) {
    const auto of = [](const ops::ConstView& cache, std::size_t step) {
      return cache.dtype == ops::DType::bf16 && to_size(cache.shape.back()) % step == 0;
    };
    bool suits = of(call.values, bf16::kStrip);
    for (int p = 0; p < call.pieces; ++p) suits = suits && of(call.keys[p], bf16::kStep);
    return suits ? AttendProducts::best(isa) : nullptr;
  }

  std::int64_t tiles_of_head(std::int64_t sequence) const {
    return (sequences_[sequence].tokens() * group_ + tile_queries_ - 1) / tile_queries_;
  }
  std::int64_t tiles_of(std::int64_t sequence) const { return kv_heads_ * tiles_of_head(sequence); }

  // Rows that query r of a sequence sees.
  Range visible(std::int64_t sequence, std::int64_t r) const {
    const std::int64_t end = ops::Sequences::value(call_.start, sequence) + r / group_ + 1;
    return {call_.window > 0 && call_.window < end ? end - call_.window : 0, end};
  }

  Tile tile(std::int64_t i) const {
    std::int64_t b = 0;
    for (; i >= tiles_of(b); ++b) i -= tiles_of(b);
    const std::int64_t first = i / kv_heads_ * tile_queries_;
    const std::int64_t queries = std::min(tile_queries_, sequences_[b].tokens() * group_ - first);
    const std::int64_t first_part = visible(b, first).begin / kPartRows;
    const std::int64_t end_part = (visible(b, first + queries - 1).end + kPartRows - 1) / kPartRows;
    return {b, i % kv_heads_, first, queries, first_part, end_part - first_part};
  }

  CacheRows rows(const ops::ConstView& pool, const Tile& tile) const {
    const ops::Sequence sequence = sequences_[tile.sequence];
    const std::int32_t* pages = sequences_.pages(sequence);
    const ops::ConstView cache = pages != nullptr ? pool[0] : sequences_.part(pool, sequence);
    const auto* data = static_cast<const std::byte*>(cache.data) +
                       tile.kv_head * cache.strides[1] * static_cast<std::int64_t>(size_bytes(cache.dtype));
    CacheRows rows{data, cache.dtype, cache.strides[0], to_size(cache.shape.back())};
    if (pages == nullptr) return rows;
    rows.pages = pages;
    rows.page_count = sequences_.page_count();
    rows.page_stride = pool.strides[0];
    rows.page_shift = std::countr_zero(static_cast<std::uint64_t>(cache.dim(0)));
    return rows;
  }

  template <class Pointer>
  ops::BasicView<Pointer> query_row(const ops::BasicView<Pointer>& view, const Tile& tile,
                                    std::int64_t r) const {
    const std::int64_t token = sequences_[tile.sequence].begin + (tile.first_query + r) / group_;
    return view[token][tile.kv_head * group_ + (tile.first_query + r) % group_];
  }

  // A worker's memory: the queries of a tile and their scores and sums, for several tiles.
  struct Scratch {
    float* queries;
    float* scores;
    Range* visible;
    Partial* partials;
    Partial* totals;
    float* sums;
    float* total_sums;
    bf16::Workspace units;
  };
  Scratch scratch(int worker, std::int64_t index = 0) {
    const std::size_t queries = tile_queries_;
    const std::size_t scored = products_ != nullptr ? queries : kMaxQueries;
    const std::size_t floats = queries * (query_floats_ + 2 * value_floats_) + scored * kScoreStride;
    const std::size_t records = queries * (sizeof(Range) + 2 * sizeof(Partial));
    const std::size_t units = products_ != nullptr ? bf16::Workspace::bytes(unit_sizes()) : 0;
    const std::size_t bytes = (units + floats * sizeof(float) + records + 63) / 64 * 64;
    std::byte* const memory =
        context_.worker_scratch(worker, to_size(together_) * bytes) + to_size(index) * bytes;
    Scratch s{};
    s.units = bf16::Workspace(unit_sizes(), memory);
    s.visible = reinterpret_cast<Range*>(memory + units);
    s.partials = reinterpret_cast<Partial*>(s.visible + queries);
    s.totals = s.partials + queries;
    s.queries = reinterpret_cast<float*>(s.totals + queries);
    s.sums = s.queries + queries * query_floats_;
    s.total_sums = s.sums + queries * value_floats_;
    s.scores = s.total_sums + queries * value_floats_;
    return s;
  }

  bf16::Workspace::Sizes unit_sizes() const {
    return {{to_size(tile_queries_), query_pieces()}, query_floats_, value_floats_};
  }

  std::size_t query_pieces() const { return bf16_ ? 1 : context_.exact() ? 3 : 2; }

  // Loads the queries in the layout of the kernels.
  QueryTile load(const Tile& tile, const Scratch& s) const {
    QueryTile result{};
    result.count = to_size(tile.queries);
    result.queries = s.queries;
    result.stride = query_floats_;
    result.visible = s.visible;
    result.scale = static_cast<float>(call_.scale);
    result.query_pieces = query_pieces();
    result.weight_pieces = bf16_ && !context_.exact() ? 1 : 2;
    result.pieces = call_.pieces;
    result.values = rows(call_.values, tile);
    for (std::int64_t r = 0; r < tile.queries; ++r)
      s.visible[r] = visible(tile.sequence, tile.first_query + r);
    for (int p = 0; p < call_.pieces; ++p) {
      result.piece_offset[p] = piece_offset_[p];
      result.keys[p] = rows(call_.keys[p], tile);
      const std::size_t width = result.keys[p].width;
      for (std::int64_t r = 0; r < tile.queries; ++r) {
        float* to = s.queries + to_size(r) * query_floats_ + piece_offset_[p];
        const ops::ConstView from = query_row(call_.queries[p], tile, r);
        load_row(from.data, from.dtype, width, to);
        std::fill(to + width, to + padded(width), 0.0f);
        if (result.keys[p].type == ops::DType::bf16 && products_ == nullptr) to_pairs(to, width);
      }
    }
    if (products_ != nullptr) pack_queries(*products_, result, s.units);
    return result;
  }

  // One part of the cache; partials and sums are set, not added to.
  void attend(const QueryTile& tile, std::int64_t part, const Scratch& s, Partial* partials, float* sums) {
    const Range rows = {part * kPartRows, (part + 1) * kPartRows};
    if (products_ == nullptr) return attend_part(tile, rows, s.scores, partials, sums);
    UnitPart unit_part(*products_, tile, s.units, s.scores, partials);
    unit_part.start();
    for (std::int64_t begin = rows.begin; begin < rows.end; begin += kBlockRows)
      unit_part.attend({begin, begin + kBlockRows}, ahead_of(*products_, tile, begin + kBlockRows, 0, 1));
    unit_part.finish(rows, sums);
  }

  // Writes the output of one query; overwrites its sums.
  void finish(const Tile& tile, std::int64_t r, const Partial& total, float* sums) const {
    const ops::View out = query_row(call_.out, tile, r);
    const std::size_t width = out.dim(0);
    scale_sums(sums, value_floats_, 1 / total.total);
    if (call_.values.dtype == ops::DType::bf16 && products_ == nullptr) from_pairs(sums, width);
    store_row(sums, width, out.data, out.dtype);
  }

  void run_tiles(std::int64_t tiles) {
    context_.pool().parallel_for_dynamic(0, tiles, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
      const Scratch s = scratch(worker);
      const bf16::Session session(products_ != nullptr && products_->uses_tiles());
      for (std::int64_t i = begin; i < end; ++i) {
        const Tile own = tile(i);
        const QueryTile queries = load(own, s);
        std::fill_n(s.totals, own.queries, Partial());
        for (std::int64_t part = own.first_part; part < own.first_part + own.parts; ++part) {
          attend(queries, part, s, s.partials, s.sums);
          for (std::size_t r = 0; r < queries.count; ++r)
            merge(s.totals[r], s.total_sums + r * value_floats_, s.partials[r], s.sums + r * value_floats_,
                  value_floats_);
        }
        for (std::int64_t r = 0; r < own.queries; ++r)
          finish(own, r, s.totals[r], s.total_sums + to_size(r) * value_floats_);
      }
    });
  }

  // Partial results of the tiles [first, first + count), one per query and part.
  struct PartialTable {
    std::int64_t first;
    std::int64_t count;
    std::int64_t longest;  // parts of the longest tile
    std::int64_t queries;  // of the largest tile
    Partial* partials;
    float* sums;
    std::size_t at(std::int64_t i, std::int64_t part, std::int64_t r) const {
      return to_size((i * longest + part) * queries + r);
    }
  };

  // Tiles of neighbouring heads that iterate over the cache together, block by block.
  struct Bundle {
    QueryTile tiles[kMaxTogether];
    Scratch scratch[kMaxTogether];
  };

  // A processor that detects reads of neighbouring lines prefetches the rest of the cache row, which belongs
  // to other heads. So a worker computes several heads together, as many as leave enough work for all
  // workers.
  std::int64_t heads_together(std::int64_t parts) const {
    std::int64_t together = products_ != nullptr ? kMaxTogether : 1;
    while (kv_heads_ % together != 0 || (together > 1 && parts / together < 4 * context_.pool().size()))
      --together;
    return together;
  }

  void run_parts(std::int64_t tiles, std::int64_t longest) {
    together_ = heads_together(tiles * longest);
    const std::int64_t queries = tile_queries_;
    const std::size_t each = to_size(longest * queries) * (value_floats_ * sizeof(float) + sizeof(Partial));
    const std::int64_t fitting = static_cast<std::int64_t>(kPartialBytes / each) / together_ * together_;
    const std::int64_t wave = std::clamp<std::int64_t>(fitting, together_, tiles);
    std::byte* memory = context_.shared_scratch(to_size(wave) * each);
    auto* sums = reinterpret_cast<float*>(memory);
    auto* partials = reinterpret_cast<Partial*>(sums + to_size(wave * longest * queries) * value_floats_);
    for (std::int64_t first = 0; first < tiles; first += wave) {
      const PartialTable table{first, std::min(wave, tiles - first), longest, queries, partials, sums};
      run_bundles(table);
      context_.pool().parallel_for(0, table.count * queries, 1,
                                   [&](std::int64_t begin, std::int64_t end, int) {
                                     for (std::int64_t i = begin; i < end; ++i)
                                       merge_query(table, i / queries, i % queries);
                                   });
    }
  }

  void run_bundles(const PartialTable& table) {
    // Neighbouring parts for one worker, which then uses what it prefetches.
    const std::int64_t items = table.count / together_ * table.longest;
    const std::int64_t grain = std::clamp<std::int64_t>(items / (8 * context_.pool().size()), 1, 8);
    context_.pool().parallel_for_dynamic(
        0, items, grain, [&](std::int64_t begin, std::int64_t end, int worker) {
          const bf16::Session session(products_ != nullptr && products_->uses_tiles());
          Bundle bundle;
          for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t first = i / table.longest * together_;
            if (i == begin || i % table.longest == 0)
              for (std::int64_t t = 0; t < together_; ++t) {
                bundle.scratch[t] = scratch(worker, t);
                bundle.tiles[t] = load(tile(table.first + first + t), bundle.scratch[t]);
              }
            run_part(table, bundle, first, i % table.longest);
          }
        });
  }

  void run_part(const PartialTable& table, const Bundle& bundle, std::int64_t first, std::int64_t part) {
    const Tile own = tile(table.first + first);
    if (part >= own.parts) return;
    const auto at = [&](std::int64_t t) { return table.at(first + t, part, 0); };
    if (together_ == 1)
      return attend(bundle.tiles[0], own.first_part + part, bundle.scratch[0], table.partials + at(0),
                    table.sums + at(0) * value_floats_);
    const auto units = [&](std::int64_t t) {
      return UnitPart(*products_, bundle.tiles[t], bundle.scratch[t].units.beside(bundle.scratch[0].units),
                      bundle.scratch[0].scores, table.partials + at(t));
    };
    for (std::int64_t t = 0; t < together_; ++t) units(t).start();
    const std::int64_t end = (own.first_part + part + 1) * kPartRows;
    for (std::int64_t begin = end - kPartRows; begin < end; begin += kBlockRows)
      for (std::int64_t t = 0; t < together_; ++t)
        units(t).attend({begin, begin + kBlockRows},
                        ahead_of(*products_, bundle.tiles[t], begin + kBlockRows, t, together_));
    for (std::int64_t t = 0; t < together_; ++t)
      units(t).finish({end - kPartRows, end}, table.sums + at(t) * value_floats_);
  }

  void merge_query(const PartialTable& table, std::int64_t i, std::int64_t r) const {
    const Tile own = tile(table.first + i);
    if (r >= own.queries) return;
    const std::size_t to = table.at(i, 0, r);
    float* sums = table.sums + to * value_floats_;
    for (std::int64_t part = 1; part < own.parts; ++part) {
      const std::size_t from = table.at(i, part, r);
      merge(table.partials[to], sums, table.partials[from], table.sums + from * value_floats_, value_floats_);
    }
    finish(own, r, table.partials[to], sums);
  }

  Context& context_;
  const AttendCall& call_;
  const ops::Sequences& sequences_;
  std::int64_t kv_heads_;
  std::int64_t group_;
  std::size_t value_floats_;
  const AttendProducts* products_;
  bool bf16_ = true;  // the queries
  std::size_t query_floats_ = 0;
  std::size_t piece_offset_[kMaxPieces] = {};
  std::int64_t tile_queries_;
  std::int64_t together_ = 1;  // tiles per worker
};

void attend_all(Context& context, const AttendCall& call, const ops::Sequences& sequences) {
  Attend(context, call, sequences).run();
}

}  // namespace sluice::backend::cpu::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu::attention {

HWY_EXPORT(attend_all);

void attend(Context& context, const AttendCall& call, const ops::Sequences& sequences) {
  SLUICE_DISPATCH(context, attend_all)(context, call, sequences);
}

}  // namespace sluice::backend::cpu::attention
#endif
