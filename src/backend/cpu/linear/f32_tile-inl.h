// The product of a few rows of a weight with a few rows of x. Included once per instruction set.
//
// Every output is computed in one order on every path: chunk by chunk, dot = sum over the chunk's slots of
// code * x, per lane; acc += scale * dot, with the lane's group; then acc += bias * (sum of x over the
// group), with the groups distributed over the lanes; then the sum of the lanes. (Dense: acc += value * x
// directly.) So a token's bits do not depend on how many tokens share the call, although few tokens unpack
// weights in registers and many read them from a panel of floats.
#if defined(SLUICE_BACKEND_CPU_LINEAR_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_LINEAR_TILE_INL_H_
#undef SLUICE_BACKEND_CPU_LINEAR_TILE_INL_H_
#else
#define SLUICE_BACKEND_CPU_LINEAR_TILE_INL_H_
#endif

#include "backend/cpu/linear/weight_scales-inl.h"
#include "backend/cpu/linear/weight_streams.h"
#include "base/integer_cast.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::linear::HWY_NAMESPACE {

constexpr int kDirectRows = kStreams;             // rows that are unpacked at the same time, in registers
constexpr int kPanelRows = kLanes >= 16 ? 8 : 4;  // rows per panel, limited by registers
constexpr int kTileTokens = 3;                    // tokens per register tile
constexpr std::int64_t kPanelElements = 512;  // columns per panel; fits the first-level cache with the x tile

// Maximum number of tokens for which weights are unpacked in registers.
template <class Format>
constexpr int kDirectTokens = Format::kSlots <= 8 ? kTileTokens : 1;

// The layout of a row of x for the kernels: the slots of all chunks, then the sum of each group.
struct XLayout {
  std::int64_t slots_floats = 0;
  std::int64_t row_floats = 0;
};
template <class Format>
XLayout x_layout(const MatrixFormat& format) {
  const std::int64_t slots = chunk_count<Format>(format.columns) * chunk_elements<Format>();
  return {slots, slots + (Format::kBiased ? padded_groups(format) : 0)};
}

// `row` has the columns as floats, padded with zeros to a whole chunk.
template <class Format>
void arrange_x(const MatrixFormat& format, const float* HWY_RESTRICT row, float* HWY_RESTRICT to) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const auto index = hn::Mul(hn::Iota(di, 0), hn::Set(di, to_int(Format::kStride)));
  const std::int64_t chunks = chunk_count<Format>(format.columns);
  float* slot = to;
  for (std::int64_t c = 0; c < chunks; ++c)
    for (int k = 0; k < Format::kSlots; ++k, slot += kLanes) {
      const float* from = row + c * chunk_elements<Format>() + Format::offset(k);
      const auto x = Format::kStride == 1 ? hn::LoadU(d, from) : hn::GatherIndex(d, from, index);
      hn::StoreU(hn::Mul(x, hn::Set(d, Format::factor(k))), d, slot);
    }
  if constexpr (Format::kBiased) {
    std::memset(slot, 0, to_size(padded_groups(format)) * sizeof(float));
    const hn::CappedTag<float, 16> dg;  // not wider than the smallest group
    for (std::int64_t g = 0; g < format.groups(); ++g) {
      auto sum = hn::Zero(dg);
      for (std::int64_t i = 0; i < format.group_size; i += static_cast<std::int64_t>(hn::Lanes(dg)))
        sum = hn::Add(sum, hn::LoadU(dg, row + g * format.group_size + i));
      slot[g] = hn::GetLane(hn::SumOfLanes(dg, sum));
    }
  }
}

// acc += bias * group sum, then the sum of the lanes.
template <class Format>
HWY_INLINE float finish(FloatVec acc, const float* biases, const float* group_sums, std::int64_t groups) {
  const FloatTag d;
  if constexpr (Format::kBiased)
    for (std::int64_t i = 0; i < groups; i += kLanes)
      acc = hn::MulAdd(hn::LoadU(d, biases + i), hn::LoadU(d, group_sums + i), acc);
  return hn::GetLane(hn::SumOfLanes(d, acc));
}

template <class Format, int C, int k = 0>
HWY_INLINE void add_slots(const Format (&w)[kDirectRows], const float* const (&x)[C],
                          FloatVec (&dot)[kDirectRows][C]) {
  const FloatTag d;
  FloatVec value[kDirectRows];
  HWY_UNROLL(4)
  for (int r = 0; r < kDirectRows; ++r) value[r] = w[r].template slot<k>();
  HWY_UNROLL(4)
  for (int c = 0; c < C; ++c) {
    const auto xv = hn::LoadU(d, x[c] + k * kLanes);
    HWY_UNROLL(4)
    for (int r = 0; r < kDirectRows; ++r)
      dot[r][c] = Format::kScaled && k == 0 ? hn::Mul(value[r], xv) : hn::MulAdd(value[r], xv, dot[r][c]);
  }
  if constexpr (k + 1 < Format::kSlots) add_slots<Format, C, k + 1>(w, x, dot);
}

// The groups of some rows, group_step floats apart.
struct RowGroups {
  const float* scales;
  const float* biases;
  std::int64_t group_step;
};

// kDirectRows rows, and those that are prefetched meanwhile.
struct DirectRows {
  const std::byte* rows[kDirectRows];
  const std::byte* next[kDirectRows];
  RowGroups groups;
};

// kDirectRows rows times C tokens, computed from the packed weights: out[c][r]. Returns false if the format
// cannot represent a number.
template <class Format, int C>
HWY_NOINLINE bool multiply_direct_as(const MatrixFormat& format, const DirectRows& from,
                                     const float* const* x, float* HWY_RESTRICT out) {
  constexpr bool kFinite = std::is_same_v<Format, FiniteByteFloats>;
  const float* const scales = from.groups.scales;
  const std::int64_t group_step = from.groups.group_step;
  const FloatTag d;
  const GroupSpread spread(format, Format::kSlots);
  FloatVec acc[kDirectRows][C];
  for (auto& row : acc)
    for (auto& one : row) one = hn::Zero(d);
  auto seen = hn::Zero(FiniteByteFloats::Bytes());
  const auto step = [&](std::int64_t chunk, const std::byte* const(&at)[kDirectRows]) HWY_ATTR {
    Format w[kDirectRows];
    HWY_UNROLL(4)
    for (int r = 0; r < kDirectRows; ++r) {
      w[r].load(at[r]);
      if constexpr (kFinite) w[r].see(seen);
    }
    const float* slots[C];
    for (int c = 0; c < C; ++c) slots[c] = x[c] + chunk * chunk_elements<Format>();
    if constexpr (Format::kScaled) {
      FloatVec dot[kDirectRows][C];
      add_slots<Format, C>(w, slots, dot);
      const float* first_scale = scales + spread.first_group(chunk);
      HWY_UNROLL(4)
      for (int r = 0; r < kDirectRows; ++r) {
        const auto scale = spread(first_scale + r * group_step);
        HWY_UNROLL(4)
        for (int c = 0; c < C; ++c) acc[r][c] = hn::MulAdd(scale, dot[r][c], acc[r][c]);
      }
    } else {
      add_slots<Format, C>(w, slots, acc);
    }
  };
  const std::int64_t whole = format.row_bytes / Format::kChunkBytes;
  for (std::int64_t chunk = 0; chunk < whole; ++chunk) {
    const std::byte* at[kDirectRows];
    for (int r = 0; r < kDirectRows; ++r) at[r] = from.rows[r] + chunk * Format::kChunkBytes;
    if (Format::kChunkBytes >= 64 || chunk * Format::kChunkBytes % 64 == 0)
      fetch_rows(from.next, chunk * Format::kChunkBytes, Format::kChunkBytes);
    step(chunk, at);
  }
  if (const std::int64_t rest_bytes = format.row_bytes - whole * Format::kChunkBytes; rest_bytes > 0) {
    HWY_ALIGN std::byte rest[kDirectRows][Format::kChunkBytes] = {};
    const std::byte* at[kDirectRows];
    for (int r = 0; r < kDirectRows; ++r) {
      std::memcpy(rest[r], from.rows[r] + whole * Format::kChunkBytes, to_size(rest_bytes));
      at[r] = rest[r];
    }
    step(whole, at);
  }
  if (kFinite && !FiniteByteFloats::all_finite(seen)) return false;
  const std::int64_t slots_floats = x_layout<Format>(format).slots_floats;
  for (int r = 0; r < kDirectRows; ++r)
    for (int c = 0; c < C; ++c)
      out[c * kDirectRows + r] = finish<Format>(acc[r][c], from.groups.biases + r * group_step,
                                                x[c] + slots_floats, format.groups());
  return true;
}

template <class Format, int C>
HWY_INLINE void multiply_direct(const MatrixFormat& format, const DirectRows& from, const float* const* x,
                                float* HWY_RESTRICT out) {
  if constexpr (std::is_same_v<Format, ByteFloats>)
    if (multiply_direct_as<FiniteByteFloats, C>(format, from, x, out)) return;
  multiply_direct_as<Format, C>(format, from, x, out);
}

template <class Format, int k = 0>
HWY_INLINE void store_slots(const Format& w, float* HWY_RESTRICT to) {
  hn::StoreU(w.template slot<k>(), FloatTag(), to + k * kPanelRows * kLanes);
  if constexpr (k + 1 < Format::kSlots) store_slots<Format, k + 1>(w, to);
}

// Unpacks chunks [begin, end) of kPanelRows rows to floats: [chunk][slot][row][lane].
template <class Format>
HWY_NOINLINE void fill_panel(const MatrixFormat& format, const std::byte* const (&rows)[kPanelRows],
                             std::int64_t begin, std::int64_t end, float* HWY_RESTRICT panel) {
  for (int r = 0; r < kPanelRows; ++r)
    for_each_chunk<Format>(
        rows[r], format.row_bytes, begin, end, [&](std::int64_t chunk, const std::byte* at) HWY_ATTR {
          Format w;
          w.load(at);
          store_slots(w, panel + ((chunk - begin) * Format::kSlots * kPanelRows + r) * kLanes);
        });
}

// Chunks of kPanelRows rows in the layout of fill_panel.
struct Panel {
  GroupSpread spread;
  int slots;  // per chunk
  const float* data;
  RowGroups groups;
};

// Multiplies chunks [begin, end), which are those of the panel, by C tokens and adds to acc
// [token][row][lane].
template <bool kScaled, int C>
HWY_NOINLINE void multiply_panel(const Panel& shape, const float* const* x, std::int64_t begin,
                                 std::int64_t end, float* HWY_RESTRICT acc) {
  const FloatTag d;
  const GroupSpread spread = shape.spread;
  const float* HWY_RESTRICT panel = shape.data;
  const float* const scales = shape.groups.scales;
  const std::int64_t group_step = shape.groups.group_step;
  const float* slots[C];
  for (int c = 0; c < C; ++c) slots[c] = x[c] + begin * shape.slots * kLanes;
  FloatVec dot[kPanelRows][C];
  const auto for_tile = [&](auto&& f) HWY_ATTR {
    HWY_UNROLL(8)
    for (int r = 0; r < kPanelRows; ++r) {
      HWY_UNROLL(4)
      for (int c = 0; c < C; ++c) f(r, c);
    }
  };
  if constexpr (!kScaled)
    for_tile([&](int r, int c) HWY_ATTR { dot[r][c] = hn::LoadU(d, acc + (c * kPanelRows + r) * kLanes); });
  for (std::int64_t chunk = begin; chunk < end; ++chunk) {
    if constexpr (kScaled) for_tile([&](int r, int c) HWY_ATTR { dot[r][c] = hn::Zero(d); });
    for (int k = 0; k < shape.slots; ++k, panel += kPanelRows * kLanes) {
      FloatVec xv[C];
      HWY_UNROLL(4)
      for (int c = 0; c < C; ++c) {
        xv[c] = hn::LoadU(d, slots[c]);
        slots[c] += kLanes;
      }
      for_tile([&](int r, int c)
                   HWY_ATTR { dot[r][c] = hn::MulAdd(hn::LoadU(d, panel + r * kLanes), xv[c], dot[r][c]); });
    }
    if constexpr (kScaled) {
      const float* first_scale = scales + spread.first_group(chunk);
      HWY_UNROLL(8)
      for (int r = 0; r < kPanelRows; ++r) {
        const auto scale = spread(first_scale + r * group_step);
        HWY_UNROLL(4)
        for (int c = 0; c < C; ++c) {
          float* at = acc + (c * kPanelRows + r) * kLanes;
          hn::StoreU(hn::MulAdd(scale, dot[r][c], hn::LoadU(d, at)), d, at);
        }
      }
    }
  }
  if constexpr (!kScaled)
    for_tile([&](int r, int c) HWY_ATTR { hn::StoreU(dot[r][c], d, acc + (c * kPanelRows + r) * kLanes); });
}

}  // namespace sluice::backend::cpu::linear::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
