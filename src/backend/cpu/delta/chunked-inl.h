// The chunked form of the delta rule. With G_i the sum of g over tokens 0..i of a chunk, D_ij = e^(G_i - G_j)
// and S the state before the chunk (Dk by Dv here):
//   (I + tril(diag(beta) (K KT o D), -1)) X = diag(beta) (V - e^G o (K S))      forward substitution
//   out = e^G o (Q S) + tril(Q KT o D) X
//   S' = e^G_last S + KT diag(e^(G_last - G)) X
// K KT and Q KT serve all value heads of a key head. Columns of S, V, X and out are independent, so
// everything after the two square matrices runs panel by panel: a panel of S (16 KiB at Dk 128) stays in L1
// for a whole chunk. Chunks are counted from the first token of the sequence's part.
#if defined(SLUICE_BACKEND_CPU_DELTA_CHUNKED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_DELTA_CHUNKED_INL_H_
#undef SLUICE_BACKEND_CPU_DELTA_CHUNKED_INL_H_
#else
#define SLUICE_BACKEND_CPU_DELTA_CHUNKED_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>

#include <algorithm>
#include <cmath>

#include "backend/cpu/delta/heads.h"
#include "backend/cpu/runtime/address.h"
#include "backend/cpu/simd/f32_tile-inl.h"
#include "base/integer_cast.h"
#include "sluice/ops/delta/delta_rule.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::delta::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;

// Tokens per chunk. It divides 64, at whose multiples a sequence may be split without a change of bits; a
// smaller one saves work in the square matrices, a larger one passes over the state.
constexpr std::size_t kStep = 32;
constexpr std::size_t kSquare = kStep > kPanel ? kStep : kPanel;  // row length of the square matrices

// Some value heads of one key head over a range of tokens.
class DeltaChunks {
 public:
  static std::size_t floats(const ops::DeltaRule& op, std::int64_t value_heads) {
    const std::size_t key_width = op.k.dim(2);
    const std::size_t value_width = op.v.dim(2);
    return 2 * (kStep + kSquare) * key_width + 4 * kStep * kSquare + kStep * (value_width + kPanel) +
           to_size(value_heads) * key_width * value_width;
  }

  DeltaChunks(const ops::DeltaRule& op, float* scratch)
      : op_(op),
        key_width_(to_size(op.k.dim(2))),
        value_width_(to_size(op.v.dim(2))),
        k_(scratch),
        q_(k_ + kStep * key_width_),
        k_panels_(q_ + kStep * key_width_),
        q_panels_(k_panels_ + kSquare * key_width_),
        kk_(q_panels_ + kSquare * key_width_),
        kq_(kk_ + kStep * kSquare),
        lower_(kq_ + kStep * kSquare),
        mix_(lower_ + kStep * kSquare),
        values_(mix_ + kStep * kSquare),
        x_(values_ + kStep * value_width_),
        states_(x_ + kStep * kPanel) {}

  // Tokens [begin, end) for value heads first..first+count-1 of `key_head`.
  void run(std::int64_t begin, std::int64_t end, const ops::View& state, std::int64_t key_head,
           std::int64_t first, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) read_state(state, value_head_of(op_, key_head, first + i), i);
    for (std::int64_t t = begin; t < end; t += static_cast<std::int64_t>(kStep)) {
      first_token_ = t;
      rows_ = to_size(std::min(end - t, static_cast<std::int64_t>(kStep)));
      padded_rows_ = hwy::RoundUpTo(rows_, kTileRows);
      read_keys(key_head);
      multiply_keys();
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t head = value_head_of(op_, key_head, first + i);
        read_gates(head);
        read_values(head);
        for (std::size_t column = 0; column < value_width_; column += kPanel)
          run_panel(values_ + column, state_of(i) + column * key_width_);
        write_values(head);
      }
    }
    for (std::int64_t i = 0; i < count; ++i) write_state(state, value_head_of(op_, key_head, first + i), i);
  }

 private:
  // A state in panels: [Dv / kPanel, Dk, kPanel].
  float* state_of(std::int64_t i) const { return states_ + to_size(i) * key_width_ * value_width_; }

  void read_state(const ops::View& state, std::int64_t head, std::int64_t i) {
    const auto* rows = static_cast<const float*>(address(state, head));
    const std::size_t stride = state.strides[1];
    for (std::size_t column = 0; column < value_width_; column += kPanel)
      transpose(rows + column * stride, stride, kPanel, key_width_, state_of(i) + column * key_width_,
                kPanel);
  }

  void write_state(const ops::View& state, std::int64_t head, std::int64_t i) {
    auto* rows = static_cast<float*>(address(state, head));
    const std::size_t stride = state.strides[1];
    for (std::size_t column = 0; column < value_width_; column += kPanel)
      transpose(state_of(i) + column * key_width_, kPanel, key_width_, kPanel, rows + column * stride,
                stride);
  }

  // Rows past the last token are zero and so have no effect.
  void read_rows(const ops::ConstView& from, std::int64_t head, std::size_t width, float* to) {
    for (std::size_t r = 0; r < rows_; ++r)
      load_row(address(from, first_token_ + static_cast<std::int64_t>(r), head), from.dtype, width,
               to + r * width);
    std::fill(to + rows_ * width, to + padded_rows_ * width, 0.0f);
  }

  void read_keys(std::int64_t key_head) {
    read_rows(op_.k, key_head, key_width_, k_);
    read_rows(op_.q, key_head, key_width_, q_);
    make_panels(k_, k_panels_);
    make_panels(q_, q_panels_);
  }

  // Transposes rows of tokens to panels [Dk, kPanel] with a token per column.
  void make_panels(const float* rows, float* panels) {
    for (std::size_t column = 0; column < padded_rows_; column += kPanel) {
      float* panel = panels + column * key_width_;
      const std::size_t have = std::min(padded_rows_ - column, kPanel);
      transpose(rows + column * key_width_, key_width_, have, key_width_, panel, kPanel);
      if (have < kPanel)
        for (std::size_t p = 0; p < key_width_; ++p)
          std::fill(panel + p * kPanel + have, panel + (p + 1) * kPanel, 0.0f);
    }
  }

  // The position of tokens i.. in panels.
  const float* token_columns(const float* panels, std::size_t i) const {
    return panels + i / kPanel * kPanel * key_width_ + i % kPanel;
  }

  // K KT and K QT, on and to the right of the diagonal.
  void multiply_keys() {
    for (std::size_t j = 0; j < padded_rows_; j += kTileRows)
      for (std::size_t column = j / kPanel * kPanel; column < padded_rows_; column += kPanel) {
        const float* left = token_columns(k_panels_, j);
        Tile tile;
        clear(tile);
        add_product(tile, left, kPanel, k_panels_ + column * key_width_, key_width_);
        store(tile, kk_ + j * kSquare + column, kSquare);
        clear(tile);
        add_product(tile, left, kPanel, q_panels_ + column * key_width_, key_width_);
        store(tile, kq_ + j * kSquare + column, kSquare);
      }
  }

  // Reads the gates of one value head and computes the square matrices with them. Log decays are bounded at
  // -200: e^-200 is 0 in F32 however large its neighbours are. So the sums are finite, and in double their
  // differences are accurate enough.
  void read_gates(std::int64_t head) {
    double sum = 0;
    for (std::size_t i = 0; i < padded_rows_; ++i) {
      const std::int64_t token = first_token_ + static_cast<std::int64_t>(i);
      beta_[i] = 0;
      if (i < rows_) {
        const float g = *static_cast<const float*>(address(op_.g, token, head));
        const float beta = *static_cast<const float*>(address(op_.beta, token, head));
        sum += std::max(-200.0, static_cast<double>(g));
        beta_[i] = std::isnan(g) ? g : beta;  // the bound would hide a NaN
      }
      sums_[i] = sum;
    }
    for (std::size_t i = 0; i < padded_rows_; ++i) {
      from_start_[i] = static_cast<float>(sums_[i]);
      to_end_[i] = static_cast<float>(sum - sums_[i]);
    }
    const FloatTag d;
    for (std::size_t i = 0; i < padded_rows_; i += kLanes) {
      hn::StoreU(hn::Exp(d, hn::LoadU(d, from_start_ + i)), d, from_start_ + i);
      hn::StoreU(hn::Exp(d, hn::LoadU(d, to_end_ + i)), d, to_end_ + i);
    }
    for (std::size_t j = 0; j < padded_rows_; ++j) apply_decay(j);
  }

  // Row j, from the diagonal on, of lower_ = (diag(beta) (K KT o D))T and mix_ = (Q KT o D)T.
  void apply_decay(std::size_t j) {
    const FloatTag d;
    float exponent[kSquare];
    const std::size_t first = j / kLanes * kLanes;
    for (std::size_t i = first; i < j; ++i) exponent[i] = 0;  // nothing left of the diagonal is ever read
    for (std::size_t i = j; i < padded_rows_; ++i) exponent[i] = static_cast<float>(sums_[i] - sums_[j]);
    for (std::size_t i = first; i < padded_rows_; i += kLanes) {
      const std::size_t at = j * kSquare + i;
      const auto decay = hn::Exp(d, hn::LoadU(d, exponent + i));
      const auto weight = hn::Mul(hn::LoadU(d, beta_ + i), decay);
      hn::StoreU(hn::Mul(weight, hn::LoadU(d, kk_ + at)), d, lower_ + at);
      hn::StoreU(hn::Mul(decay, hn::LoadU(d, kq_ + at)), d, mix_ + at);
    }
  }

  void read_values(std::int64_t head) { read_rows(op_.v, head, value_width_, values_); }

  void write_values(std::int64_t head) {
    for (std::size_t r = 0; r < rows_; ++r)
      store_row(values_ + r * value_width_, value_width_,
                address(op_.out, first_token_ + static_cast<std::int64_t>(r), head), op_.out.dtype);
  }

  // One panel of columns; `values` holds v and is replaced by the output.
  void run_panel(float* values, float* state) {
    for (std::size_t i = 0; i < padded_rows_; i += kTileRows) solve_rows(i, values, state);
    for (std::size_t i = 0; i < padded_rows_; i += kTileRows) {
      Tile tile;
      clear(tile);
      add_product(tile, token_columns(q_panels_, i), kPanel, state, key_width_);
      scale(tile, from_start_ + i);
      add_product(tile, mix_ + i, kSquare, x_, i);
      add_lower_product(tile, mix_ + i * kSquare + i, kSquare, x_ + i * kPanel);
      store(tile, values + i * value_width_, value_width_);
    }
    for (std::size_t i = 0; i < padded_rows_; i += kTileRows) {
      Tile tile;
      load(tile, x_ + i * kPanel, kPanel);
      scale(tile, to_end_ + i);
      store(tile, x_ + i * kPanel, kPanel);
    }
    update_state(state);
  }

  // Rows i.. of X, from those above.
  void solve_rows(std::size_t i, const float* values, const float* state) {
    const FloatTag d;
    Tile tile;
    clear(tile);
    add_product(tile, token_columns(k_panels_, i), kPanel, state, key_width_);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kTileRows; ++r) {
      const auto beta = hn::Set(d, beta_[i + r]);
      const auto decay = hn::Set(d, from_start_[i + r]);
      const float* v = values + (i + r) * value_width_;
      tile.at[r][0] = hn::Mul(beta, hn::NegMulAdd(decay, tile.at[r][0], hn::LoadU(d, v)));
      tile.at[r][1] = hn::Mul(beta, hn::NegMulAdd(decay, tile.at[r][1], hn::LoadU(d, v + kLanes)));
    }
    subtract_product(tile, lower_ + i, kSquare, x_, i);
    solve_unit_lower(tile, lower_ + i * kSquare + i, kSquare);
    store(tile, x_ + i * kPanel, kPanel);
  }

  void update_state(float* state) {
    float decay[kTileRows];
    std::fill(decay, decay + kTileRows, from_start_[padded_rows_ - 1]);
    for (std::size_t p = 0; p < key_width_; p += kTileRows) {
      Tile tile;
      load(tile, state + p * kPanel, kPanel);
      scale(tile, decay);
      add_product(tile, k_ + p, key_width_, x_, rows_);
      store(tile, state + p * kPanel, kPanel);
    }
  }

  const ops::DeltaRule& op_;
  const std::size_t key_width_;
  const std::size_t value_width_;
  float* const k_;         // [kStep, Dk]
  float* const q_;         // [kStep, Dk]
  float* const k_panels_;  // [kSquare / kPanel, Dk, kPanel]
  float* const q_panels_;
  float* const kk_;  // [kStep, kSquare], as are the next three
  float* const kq_;
  float* const lower_;
  float* const mix_;
  float* const values_;  // [kStep, Dv]
  float* const x_;       // [kStep, kPanel]
  float* const states_;
  double sums_[kStep] = {};  // G
  float beta_[kSquare] = {};
  float from_start_[kSquare] = {};  // e^G
  float to_end_[kSquare] = {};      // e^(G_last - G)
  std::int64_t first_token_ = 0;
  std::size_t rows_ = 0;
  std::size_t padded_rows_ = 0;
};

}  // namespace sluice::backend::cpu::delta::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
