// The integer product of some rows of a weight with many rows of x. Included once per instruction set.
//
// Weights are unpacked once for all tokens of a call, into a panel in the first-level cache that holds pairs
// of neighbouring columns, with rows next to each other. A pair of x is multiplied by all rows of a vector at
// once, so every lane is the sum of one row and no lanes are added. 4-bit codes of several rows are
// interleaved as words of eight while they are packed, and unpacked afterwards: pairs are then of columns
// four apart, for x too, or groups of four bytes with AVX-512's VNNI. Limited by the products: 2*T*N*K
// operations, twice as many per cycle as with F32 on processors with separate units for products and sums.
#if defined(SLUICE_BACKEND_CPU_INTEGER_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_INTEGER_PANEL_INL_H_
#undef SLUICE_BACKEND_CPU_INTEGER_PANEL_INL_H_
#else
#define SLUICE_BACKEND_CPU_INTEGER_PANEL_INL_H_
#endif

#include <span>

#include "backend/cpu/linear/integer/codes-inl.h"
#include "backend/cpu/linear/integer/panel_nibbles-inl.h"
#include "backend/cpu/linear/integer/plain_row.h"
#include "backend/cpu/runtime/fetch.h"
#include "base/integer_cast.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET {

constexpr std::int64_t kPanelRows = 2 * kLanes;
constexpr std::int64_t kPanelColumns = 512;         // whole groups
constexpr int kPanelTokens = kLanes >= 16 ? 8 : 4;  // per register tile
// Tokens per register tile of byte products with two digits. Twelve sums keep the multipliers busy; with
// more, a Zen 5 pauses longer between two groups.
constexpr int kByteTokens = 3;
constexpr int kPairsAtOnce = 2;            // pairs of columns, unrolled
constexpr std::int64_t kPanelBlock = 128;  // tokens per use of a panel

// Scratch memory of one worker.
struct PanelScratch {
  alignas(64) std::int16_t lines[kPanelRows][kPanelColumns + kWords];  // rows before they are in the panel
  alignas(64) std::int16_t panel[kPanelColumns * kPanelRows];          // [pair][row]
  alignas(64) float acc[kChains][kPanelBlock][kPanelRows];
};

// Some rows of a matrix; if there are fewer, the last one is repeated.
struct PanelSource {
  const MatrixFormat& format;
  const Matrix& matrix;
  std::int64_t row;
  std::int64_t at(std::int64_t r) const { return std::min(row + r, format.rows - 1); }
};

template <int kBits, Levels kLevels>
HWY_INLINE void unpack_line(const std::byte* from, std::int64_t columns, std::int16_t* HWY_RESTRICT to) {
  const Unpacker<kBits, kLevels> unpack;
  for (std::int64_t i = 0; i < columns; i += kWords)
    hn::StoreU(unpack(from + i * kBits / 8), ShortTag(), to + i);
}

// Unpacks columns [begin, begin + columns) of the rows into the scratch's panel.
template <int kBits, Levels kLevels>
HWY_NOINLINE void fill_panel(const PanelSource& source, std::int64_t begin, std::int64_t columns,
                             PanelScratch& scratch) {
  const MatrixFormat& format = source.format;
  const std::byte* end = source.matrix.values + format.rows * format.row_bytes;
  const std::int64_t bytes = columns * kBits / 8;
  for (std::int64_t r = 0; r < kPanelRows; ++r) {
    const std::byte* from = source.matrix.values + source.at(r) * format.row_bytes + begin * kBits / 8;
    // Nothing may be read after the last rows.
    std::byte copy[kPanelColumns + 2 * kReadPast];
    if (end - from < bytes + 2 * kReadPast) {
      std::memcpy(copy, from, to_size(bytes));
      std::memset(copy + bytes, 0, to_size(2 * kReadPast));
      from = copy;
    }
    unpack_line<kBits, kLevels>(from, columns, scratch.lines[r]);
  }
  transpose(reinterpret_cast<const float*>(scratch.lines[0]), (kPanelColumns + kWords) / 2, kPanelRows,
            to_size(columns / 2), reinterpret_cast<float*>(scratch.panel), kPanelRows);
}

// The same for 4-bit codes, in the order of order_for_nibbles.
template <Levels kLevels>
HWY_NOINLINE void fill_panel_of_nibbles(const PanelSource& source, std::int64_t begin, std::int64_t columns,
                                        PanelScratch& scratch) {
  const MatrixFormat& format = source.format;
  const std::byte* rows[kPanelRows];
  for (std::int64_t r = 0; r < kPanelRows; ++r)
    rows[r] = source.matrix.values + source.at(r) * format.row_bytes + begin / 2;
  constexpr std::int64_t kOfVector = kBytePanels ? 4 : 2;  // columns
  std::int64_t i = 0;
  const auto to = [&](std::int64_t lane) {
    return scratch.panel + i / kOfVector * 2 * kPanelRows + 2 * lane;
  };
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  for (; i + kWideColumns <= columns; i += kWideColumns)
    for (std::int64_t lane = 0; lane < kPanelRows; lane += kLanes)
      split_wide_nibbles<kLevels>(rows + lane, i / 2, to(lane), 2 * kPanelRows);
#endif
  for (; i < columns; i += 32)
    for (std::int64_t lane = 0; lane < kPanelRows; lane += kLanes) {
      const auto block = [&](int r) HWY_ATTR { return load_blocks(rows + lane + r, i / 2); };
      split_nibbles<kLevels>({block(0), block(1), block(2), block(3)}, to(lane), 2 * kPanelRows);
    }
}

// Prefetches what the next panel of the matrix reads, scales and biases first: during the products, some
// lines before each group, since a core drops prefetches when its queue to memory is full.
class PanelAhead {
 public:
  // As many lines per call of fetch() as are needed to prefetch everything in `times` calls.
  PanelAhead(const PanelSource& source, std::int64_t times) {
    const MatrixFormat& format = source.format;
    const std::int64_t first = std::min(source.row + kPanelRows, format.rows);
    const std::int64_t rows = std::min(source.row + 2 * kPanelRows, format.rows) - first;
    if (rows == 0) return;
    const auto all_rows = [&](const std::byte* all, std::int64_t row_bytes) {
      return Part{all + first * row_bytes, rows * row_bytes};
    };
    parts_[0] = all_rows(source.matrix.values, format.row_bytes);
    parts_[1] = all_rows(source.matrix.biases, format.bias_row_bytes);
    parts_[2] = all_rows(source.matrix.scales, format.scale_row_bytes);
    std::int64_t turns = 0;
    for (const Part& part : parts_) turns += (part.bytes + kTurnBytes - 1) / kTurnBytes;
    turns_ = (turns + times - 1) / times;
    turn_to_next();
  }

  HWY_INLINE void fetch() {
    for (std::int64_t turn = 0; turn < turns_; ++turn) {
      for (std::int64_t i = 0; i < kTurnBytes; i += 64) fetch_line(at_ + i);
      at_ += kTurnBytes;
      if (at_ >= end_) turn_to_next();
    }
  }

 private:
  static constexpr std::int64_t kTurnBytes = 128;
  struct Part {
    const std::byte* at;
    std::int64_t bytes;
  };
  void turn_to_next() {
    do {
      if (left_ == 0) {
        turns_ = 0;
        return;
      }
      --left_;
    } while (parts_[left_].bytes == 0);
    at_ = parts_[left_].at;
    end_ = at_ + parts_[left_].bytes;
  }

  Part parts_[3] = {};
  int left_ = 3;            // parts that have not been started
  std::int64_t turns_ = 0;  // per call of fetch()
  const std::byte* at_ = nullptr;
  const std::byte* end_ = nullptr;
};

inline void fill_panel(const PanelSource& source, std::int64_t begin, std::int64_t columns,
                       PanelScratch& scratch) {
  if (has_nibble_panels(source.format)) {
    if (source.format.storage == Storage::affine4)
      return fill_panel_of_nibbles<Levels::codes>(source, begin, columns, scratch);
    return fill_panel_of_nibbles<Levels::e2m1>(source, begin, columns, scratch);
  }
  switch (source.format.storage) {
    case Storage::affine2:
      return fill_panel<2, Levels::codes>(source, begin, columns, scratch);
    case Storage::affine3:
      return fill_panel<3, Levels::codes>(source, begin, columns, scratch);
    case Storage::affine4:
      return fill_panel<4, Levels::codes>(source, begin, columns, scratch);
    case Storage::affine5:
      return fill_panel<5, Levels::codes>(source, begin, columns, scratch);
    case Storage::affine6:
      return fill_panel<6, Levels::codes>(source, begin, columns, scratch);
    case Storage::affine8:
      return fill_panel<8, Levels::codes>(source, begin, columns, scratch);
    default:
      return fill_panel<4, Levels::e2m1>(source, begin, columns, scratch);
  }
}

// 16-bit scales of a panel's rows, [group][row]: those of two groups are transposed as one word.
inline void read_bf16_groups(const std::byte* from, std::int64_t row_bytes, std::int64_t groups, float* pairs,
                             float* to) {
  const FloatTag d;
  const WordTag du;
  transpose(reinterpret_cast<const float*>(from), to_size(row_bytes / 4), kPanelRows, to_size(groups / 2),
            pairs, kPanelRows);
  for (std::int64_t pair = 0; pair < groups / 2; ++pair, pairs += kPanelRows, to += 2 * kPanelRows)
    for (std::int64_t lane = 0; lane < kPanelRows; lane += kLanes) {
      const auto words = hn::BitCast(du, hn::LoadU(d, pairs + lane));
      hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(words)), d, to + lane);
      hn::StoreU(hn::BitCast(d, hn::And(words, hn::Set(du, 0xffff0000u))), d, to + kPanelRows + lane);
    }
}

// Scales and biases of a panel's rows, [group][row]. `line` has room for those of all rows.
inline void read_panel_groups(const PanelSource& source, float* line, float* scales, float* biases) {
  const MatrixFormat& format = source.format;
  const std::int64_t step = padded_groups(format);
  const bool in_pairs = source.row + kPanelRows <= format.rows && format.groups() % 8 == 0;
  const auto read = [&](const std::byte* from, ScaleType type, std::int64_t row_bytes, float* to) HWY_ATTR {
    if (in_pairs && type == ScaleType::bf16)
      return read_bf16_groups(from + source.row * row_bytes, row_bytes, format.groups(), line, to);
    for (std::int64_t r = 0; r < kPanelRows; ++r)
      read_scales(from + source.at(r) * row_bytes, type, format.groups(), line + r * step);
    transpose(line, to_size(step), kPanelRows, to_size(step), to, kPanelRows);
  };
  read(source.matrix.scales, format.scale_type, format.scale_row_bytes, scales);
  if (format.storage == Storage::fp4)
    undo_levels(scales, biases, step * kPanelRows);
  else
    read(source.matrix.biases, format.bias_type, format.bias_row_bytes, biases);
}

// Compilers that move the sums of an unrolled loop after its products run out of registers.
HWY_INLINE void keep_in_register(IntVec& sum) {
#if HWY_ARCH_X86
  asm("" : "+v"(sum.raw));
#else
  (void)sum;
#endif
}

// Groups [begin, end) of a panel's rows.
struct PanelGroups {
  const std::int16_t* codes;  // of group `begin`
  const float* scales;        // [group][row], from group 0 on
  const float* biases;
  std::int64_t group_size;
  std::int64_t begin;
  std::int64_t end;
};

// What the chains begin with: the first group of each loads these in place of its sums.
alignas(64) constexpr float kZeros[kPanelRows] = {};

// Adds the products of one group and one token to its sums for all rows.
HWY_INLINE void add_group(const PanelGroups& w, const PlainRow& x, std::int64_t g, const IntVec (&sums)[2],
                          float (&acc)[kPanelRows]) {
  const float* before = g < kChains ? kZeros : acc;
  const FloatTag d;
  const auto x_scale = hn::Set(d, x.scales[g]);
  const auto x_sum = hn::Set(d, x.sums[g]);
  HWY_UNROLL(2)
  for (int v = 0; v < 2; ++v) {
    const std::int64_t lane = v * kLanes;
    const auto dot = hn::Mul(hn::ConvertTo(d, sums[v]), x_scale);
    const auto sum =
        hn::MulAdd(hn::Load(d, w.scales + g * kPanelRows + lane), dot, hn::Load(d, before + lane));
    hn::Store(hn::MulAdd(hn::Load(d, w.biases + g * kPanelRows + lane), x_sum, sum), d, acc + lane);
  }
}

#if HWY_TARGET == HWY_AVX3_DL
// C tokens with byte products, added to `acc` of the first of them: every four columns are multiplied by the
// high and by the low digits.
template <int C>
HWY_NOINLINE void multiply_byte_panel(const PanelGroups& w, const PlainRow* x, PanelAhead& ahead,
                                      float (*acc)[kPanelBlock][kPanelRows], std::int64_t token) {
  const ShortTag ds;
  const std::int16_t* codes = w.codes;
  for (std::int64_t g = w.begin; g < w.end; ++g) {
    ahead.fetch();
    IntVec sums[C][2][2];  // [token][digit][row]
    const std::int16_t* digits[C];
    HWY_UNROLL(8)
    for (int c = 0; c < C; ++c) {
      sums[c][0][0] = sums[c][0][1] = sums[c][1][0] = sums[c][1][1] = hn::Zero(IntTag());
      digits[c] = x[c].integers + g * w.group_size;
    }
    for (std::int64_t p = 0; p < w.group_size; p += 4, codes += 2 * kWords) {
      const auto first = hn::BitCast(HalfTag(), hn::Load(ds, codes));
      const auto second = hn::BitCast(HalfTag(), hn::Load(ds, codes + kWords));
      HWY_UNROLL(8)
      for (int c = 0; c < C; ++c) {
        HWY_UNROLL(2)
        for (int digit = 0; digit < 2; ++digit) {
          std::int32_t four = 0;
          std::memcpy(&four, digits[c] + p + 2 * digit, sizeof(four));
          const auto all = hn::BitCast(ds, hn::Set(IntTag(), four));
          sums[c][digit][0] = add_byte_products(sums[c][digit][0], first, all);
          sums[c][digit][1] = add_byte_products(sums[c][digit][1], second, all);
          keep_in_register(sums[c][digit][0]);
          keep_in_register(sums[c][digit][1]);
        }
      }
    }
    HWY_UNROLL(8)
    for (int c = 0; c < C; ++c) {
      const auto whole = [&](int v) HWY_ATTR {
        return hn::Add(hn::ShiftLeft<kDigitBits>(sums[c][0][v]), sums[c][1][v]);
      };
      add_group(w, x[c], g, {whole(0), whole(1)}, acc[g % kChains][token + c]);
    }
  }
}
#endif

// C tokens, added to `acc` of the first of them.
template <int C>
HWY_NOINLINE void multiply_panel(const PanelGroups& w, const PlainRow* x, PanelAhead& ahead,
                                 float (*acc)[kPanelBlock][kPanelRows], std::int64_t token) {
  const ShortTag ds;
  const std::int16_t* codes = w.codes;
  for (std::int64_t g = w.begin; g < w.end; ++g) {
    ahead.fetch();
    IntVec sums[C][2];
    const std::int16_t* pairs[C];
    HWY_UNROLL(8)
    for (int c = 0; c < C; ++c) {
      sums[c][0] = sums[c][1] = hn::Zero(IntTag());
      pairs[c] = x[c].integers + g * w.group_size;
    }
    for (std::int64_t p = 0; p < w.group_size; p += 2 * kPairsAtOnce) {
      HWY_UNROLL(4)
      for (int u = 0; u < kPairsAtOnce; ++u, codes += 2 * kWords) {
        const auto first = hn::Load(ds, codes);
        const auto second = hn::Load(ds, codes + kWords);
        HWY_UNROLL(8)
        for (int c = 0; c < C; ++c) {
          std::int32_t pair = 0;
          std::memcpy(&pair, pairs[c] + p + 2 * u, sizeof(pair));
          const auto both = hn::BitCast(ds, hn::Set(IntTag(), pair));
          sums[c][0] = add_products(sums[c][0], first, both);
          sums[c][1] = add_products(sums[c][1], second, both);
          keep_in_register(sums[c][0]);
          keep_in_register(sums[c][1]);
        }
      }
    }
    HWY_UNROLL(8)
    for (int c = 0; c < C; ++c) add_group(w, x[c], g, sums[c], acc[g % kChains][token + c]);
  }
}

// The tokens that meet a panel, and where their sums go.
struct PanelTokens {
  std::span<const PlainRow> x;
  float (*acc)[kPanelBlock][kPanelRows];
  std::int64_t acc_step;  // 0: all tiles share one place, as the panel holds whole rows
  float* out;             // of the first token; null: the next panel adds to the sums
  std::int64_t out_step;
};

// The chains of `count` tokens from token t on, which are complete, as results.
inline void add_chains(const PanelTokens& tokens, std::int64_t t, std::int64_t count, std::int64_t groups) {
  const FloatTag d;
  const std::int64_t at = t * tokens.acc_step;
  for (std::int64_t c = 0; c < count; ++c)
    for (std::int64_t r = 0; r < kPanelRows; r += kLanes) {
      const auto chain = [&](int i) HWY_ATTR {
        return hn::Load(d, (i < groups ? tokens.acc[i][at + c] : kZeros) + r);
      };
      hn::StoreU(hn::Add(hn::Add(chain(0), chain(1)), hn::Add(chain(2), chain(3))), d,
                 tokens.out + (t + c) * tokens.out_step + r);
    }
}

// All tokens. Tiles are complete one by one, while their sums are in the first-level cache.
inline void multiply_tokens(const PanelGroups& groups, PanelAhead& ahead, bool nibbles,
                            const PanelTokens& of) {
  const auto tokens = std::ssize(of.x);
  std::int64_t t = 0;
  const auto multiply = [&](auto* tile, std::int64_t count) HWY_ATTR {
    for (; t + count <= tokens; t += count) {
      tile(groups, of.x.data() + t, ahead, of.acc, t * of.acc_step);
      if (of.out != nullptr) add_chains(of, t, count, groups.end);
    }
  };
#if HWY_TARGET == HWY_AVX3_DL
  if (nibbles) {
    multiply(multiply_byte_panel<kByteTokens>, kByteTokens);
    multiply(multiply_byte_panel<2>, 2);
    multiply(multiply_byte_panel<1>, 1);
    return;
  }
#else
  (void)nibbles;
#endif
  multiply(multiply_panel<kPanelTokens>, kPanelTokens);
  if constexpr (kPanelTokens > 4) multiply(multiply_panel<4>, 4);
  multiply(multiply_panel<2>, 2);
  multiply(multiply_panel<1>, 1);
}

// The results of read_panel_groups.
struct PanelScales {
  const float* scales;
  const float* biases;
};

// Multiplies up to kPanelBlock tokens by a panel's rows: out[token * out_step + r].
inline void multiply_rows(const PanelSource& source, const PanelScales& of, std::span<const PlainRow> x,
                          PanelScratch& scratch, float* out, std::int64_t out_step) {
  const MatrixFormat& format = source.format;
  const auto tokens = std::ssize(x);
  const bool nibbles = has_nibble_panels(format);
  const std::int64_t at_once = kBytePanels && nibbles ? kByteTokens : kPanelTokens;
  const std::int64_t blocks = (tokens + at_once - 1) / at_once;
  PanelAhead ahead(source, format.groups() * blocks);
  for (std::int64_t begin = 0; begin < format.columns; begin += kPanelColumns) {
    const std::int64_t columns = std::min(kPanelColumns, format.columns - begin);
    fill_panel(source, begin, columns, scratch);
    const PanelGroups groups{scratch.panel,
                             of.scales,
                             of.biases,
                             format.group_size,
                             begin / format.group_size,
                             (begin + columns) / format.group_size};
    const bool last = begin + columns == format.columns;
    multiply_tokens(groups, ahead, nibbles,
                    {x, scratch.acc, columns < format.columns, last ? out : nullptr, out_step});
  }
}

}  // namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET
HWY_AFTER_NAMESPACE();

#endif
