// One tile of queries over one part of a BF16 cache with BF16 products (bf16_products.h). Included once per
// instruction set.
//
// Blocks and parts are those of f32_tile-inl.h. For queries that do not see a row its weight is 0, which has
// no effect as long as its values are finite; otherwise the queries of the block are computed one by one,
// each over the rows it sees, with the same bits. A query that sees non-finite values is computed again over
// the part in F32, because the zeros of AMX would spread them to neighbouring columns.
#if defined(SLUICE_BACKEND_CPU_ATTEND_UNITS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_ATTEND_UNITS_INL_H_
#undef SLUICE_BACKEND_CPU_ATTEND_UNITS_INL_H_
#else
#define SLUICE_BACKEND_CPU_ATTEND_UNITS_INL_H_
#endif

#include "backend/cpu/attention/bf16_products.h"
#include "backend/cpu/attention/f32_tile-inl.h"
#include "base/integer_cast.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::attention::HWY_NAMESPACE {

constexpr std::int64_t kUnitRows = bf16::kKeyRows;
constexpr std::int64_t kValueStep = bf16::kValueStep;
constexpr std::size_t kWeighTurns = 2;  // of prefetching per vector while AMX is busy
static_assert(kBlockRows == static_cast<std::int64_t>(bf16::kValueRows));

HWY_INLINE const bf16::Half* halves(const CacheRows& rows, std::int64_t j) {
  return static_cast<const bf16::Half*>(rows.data) + rows.offset(j);
}

// One head's share of prefetching the block of rows from `first` on, if `heads` neighbouring heads are
// computed together: whole rows of all of them, as the processor's own prefetcher would.
HWY_INLINE AttendAhead ahead_of(const AttendProducts& products, const QueryTile& tile, std::int64_t first,
                                std::int64_t head, std::int64_t heads) {
  const std::int64_t share = (kBlockRows + heads - 1) / heads;
  const auto rows = [&](const CacheRows& cache) {
    const std::size_t bytes = 2 * cache.width;
    return AttendAhead::Rows{
        cache.address_ahead(first + head * share) - static_cast<std::uintptr_t>(head) * bytes,
        2 * cache.stride, to_size(heads) * bytes};
  };
  return {rows(tile.keys[0]), rows(tile.values), to_size(share),
          products.uses_tiles() ? AttendAhead::Order::quarters : AttendAhead::Order::rows};
}

// Rounds to nearest, ties to even; NaN stays NaN.
HWY_INLINE FloatVec round_to_bf16(FloatVec x) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  const auto bits = hn::BitCast(du, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto raised = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fff)));
  return hn::BitCast(d, hn::And(raised, hn::Set(du, 0xffff0000u)));
}

HWY_INLINE bf16::Columns unit_columns(const QueryTile& tile) {
  return {tile.count, tile.query_pieces};
}

HWY_INLINE void pack_queries(const AttendProducts& products, const QueryTile& tile,
                             const bf16::Workspace& space) {
  bf16::Half* to = space.queries;
  for (int p = 0; p < tile.pieces; ++p) {
    const std::size_t width = tile.keys[p].width;
    const bf16::Columns columns = unit_columns(tile);
    products.pack_queries(tile.queries + tile.piece_offset[p], tile.stride, columns, width, space.pieces, to);
    to += columns.all() * width;
  }
}

// A tile's loop over a part. Its queries are already packed, and its state between blocks is in its memory,
// so several tiles that share everything but queries and sums can be interleaved.
class UnitPart {
 public:
  UnitPart(const AttendProducts& products, const QueryTile& tile, const bf16::Workspace& space, float* scores,
           Partial* partials)
      : products_(products), tile_(tile), space_(space), scores_(scores), partials_(partials) {}

  void start() {
    std::fill_n(partials_, tile_.count, Partial());
    std::fill_n(space_.sums, products_.all_sums(tile_.count, pieces_, tile_.values.width), 0.0f);
  }
  // Computes a block of the part; blocks must be in ascending order.
  void attend(const Range& block, const AttendAhead& ahead) {
    ahead_ = ahead;
    Range any = {kBlockRows, 0};
    Range all = {0, kBlockRows};
    for (std::size_t q = 0; q < tile_.count; ++q) {
      const Range rows = seen(q, block);
      all = overlap(all, rows);
      if (!rows.empty()) any = {std::min(any.begin, rows.begin), std::max(any.end, rows.end)};
    }
    if (any.empty()) return;
    for (std::int64_t j = any.begin / kUnitRows * kUnitRows; j < any.end; j += kUnitRows)
      score(block.begin, j, any);
    for (std::size_t q = 0; q < tile_.count; ++q) weigh(q, seen(q, block), any);
    if (careful_) return add_values_carefully(block);
    const Range common = all.empty() ? Range{any.end, any.end} : all;
    if (finite(block.begin, {any.begin, common.begin}) && finite(block.begin, {common.end, any.end}))
      add_values(block.begin, any, scores_, tile_.count, space_.sums);
    else
      for (std::size_t q = 0; q < tile_.count; ++q) add_values_alone(q, block.begin, seen(q, block));
  }
  // Sets the sums of a part after its last block.
  void finish(const Range& part, float* sums) const {
    const std::size_t width = tile_.values.width;
    products_.add_sums(space_.sums, tile_.count, pieces_, width, sums);
    bool good = true;
    for (std::size_t q = 0; q < tile_.count; ++q) good = good && finite_sums(sums + q * width, width);
    if (good) return;
    UnitPart again(*this);
    again.careful_ = true;
    again.start();
    for (std::int64_t begin = part.begin; begin < part.end; begin += kBlockRows)
      again.attend({begin, begin + kBlockRows}, AttendAhead());
    for (std::size_t q = 0; q < tile_.count; ++q, sums += width) {
      if (finite_sums(sums, width)) continue;
      std::copy_n(again.sums_of(q), width, sums);
      from_pairs(sums, width);
    }
  }

 private:
  // The rows of the block that query q sees.
  Range seen(std::size_t q, const Range& block) const {
    const Range rows = overlap(tile_.visible[q], block);
    return {rows.begin - block.begin, rows.end - block.begin};
  }

  // Scores kUnitRows rows from first + j on, of which only those in `any` may be read.
  void score(std::int64_t first, std::int64_t j, const Range& any) {
    const bool whole = any.begin <= j && j + kUnitRows <= any.end;
    const bf16::Columns columns = unit_columns(tile_);
    const bf16::Half* queries = space_.queries;
    for (int piece = 0; piece < tile_.pieces; ++piece) {
      const CacheRows& keys = tile_.keys[piece];
      const bf16::Half* rows = halves(keys, first + j);
      std::int64_t stride = keys.stride;
      if (!whole) {
        stride = static_cast<std::int64_t>(keys.width);
        for (std::int64_t r = 0; r < kUnitRows; ++r)
          std::copy_n(halves(keys, first + std::clamp(j + r, any.begin, any.end - 1)), keys.width,
                      space_.prepared + r * stride);
        rows = space_.prepared;
      }
      products_.multiply_keys({rows, 2 * stride, keys.width}, queries, columns, piece > 0, ahead_,
                              space_.dots);
      queries += columns.all() * keys.width;
    }
    products_.store_scores(space_.dots, columns, scores_ + j, kScoreStride);
  }

  void weigh(std::size_t q, const Range& seen, const Range& any) {
    float* const weights = scores_ + q * kScoreStride;
    const std::int64_t begin = any.begin / kUnitRows * kUnitRows;
    const std::int64_t end = (any.end + kUnitRows - 1) / kUnitRows * kUnitRows;
    if (seen.empty()) {
      std::fill(weights + begin, weights + end, 0.0f);
      return;
    }
    const float shrink = weigh_block(weights, seen, tile_.scale, partials_[q], [&](FloatVec weight) HWY_ATTR {
      if (weigh_turns_ > 0) ahead_.fetch(weigh_turns_);
      return tile_.weight_pieces == 1 ? round_to_bf16(weight) : weight;
    });
    std::fill(weights + begin, weights + seen.begin, 0.0f);
    std::fill(weights + seen.end, weights + end, 0.0f);
    if (shrink != 1) scale_sums(sums_of(q), floats_of_query(), shrink);
  }

  bool finite(std::int64_t first, const Range& rows) const {
    for (std::int64_t j = rows.begin; j < rows.end; ++j) {
      const bf16::Half* row = halves(tile_.values, first + j);
      bool all = true;
      for (std::size_t i = 0; i < tile_.values.width; ++i) all &= (row[i] & 0x7f80) != 0x7f80;
      if (!all) return false;
    }
    return true;
  }

  static bool finite_sums(const float* sums, std::size_t width) {
    const FloatTag d;
    auto zero = hn::Zero(d);  // NaN if a number is not finite
    for (std::size_t i = 0; i < width; i += kLanes)
      zero = hn::MulAdd(hn::Zero(d), hn::LoadU(d, sums + i), zero);
    return hn::AllTrue(d, hn::Eq(zero, hn::Zero(d)));
  }

  std::size_t floats_of_query() const { return products_.query_sums(pieces_, tile_.values.width); }
  float* sums_of(std::size_t q) const { return space_.sums + q * floats_of_query(); }

  // sums += weights of `count` queries times the values of first + [rows).
  void add_values(std::int64_t first, const Range& rows, const float* weights, std::size_t count,
                  float* sums) {
    const CacheRows& values = tile_.values;
    const std::size_t begin = rows.begin / kValueStep;
    const std::size_t end = (rows.end + kValueStep - 1) / kValueStep;
    bf16::ValueStep steps[kBlockRows / kValueStep];
    bf16::Half* copy = space_.prepared;
    for (std::size_t s = begin; s < end; ++s) {
      const std::int64_t j = static_cast<std::int64_t>(s) * kValueStep;
      steps[s] = {halves(values, first + j), 2 * to_size(values.stride)};
      if (rows.begin <= j && j + kValueStep <= rows.end) continue;
      // The first or the last step, of which only some rows may be read.
      steps[s] = {copy, 2 * values.width};
      for (std::int64_t r = j; r < j + kValueStep; ++r, copy += values.width)
        std::copy_n(halves(values, first + std::clamp(r, rows.begin, rows.end - 1)), values.width, copy);
    }
    products_.add_values({steps, begin, end, values.width}, {weights, kScoreStride, count, pieces_},
                         space_.weights, ahead_, sums);
  }

  // The sums are computed as for F32 rows, in the order of pairs.
  void add_values_carefully(const Range& block) {
    for (std::size_t q = 0; q < tile_.count; ++q)
      add_block(tile_, block, seen(q, block), {{scores_ + q * kScoreStride, kScoreStride}, 1},
                {sums_of(q), tile_.values.width});
  }

  void add_values_alone(std::size_t q, std::int64_t first, const Range& rows) {
    if (rows.empty()) return;
    float* const spare = space_.spare;  // sixteen rows of sums, including some of other queries
    std::copy_n(sums_of(q), floats_of_query(), spare);
    std::fill(spare + floats_of_query(), spare + 8 * tile_.values.width, 0.0f);
    add_values(first, rows, scores_ + q * kScoreStride, 1, spare);
    std::copy_n(spare, floats_of_query(), sums_of(q));
  }

  const AttendProducts& products_;
  const QueryTile& tile_;
  const bf16::Workspace space_;
  const std::size_t pieces_ = tile_.weight_pieces;
  const std::size_t weigh_turns_ = products_.uses_tiles() ? kWeighTurns : 0;
  bool careful_ = false;
  AttendAhead ahead_;
  float* scores_;
  Partial* partials_;
};

}  // namespace sluice::backend::cpu::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
