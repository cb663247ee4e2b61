// The optimal (Lloyd-Max) scalar quantisers of N(0,1): each level is the mean of its cell, and borders are
// midway between levels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace sluice::quant {

class Codebook {
 public:
  static constexpr std::size_t kMaxLevels = 256;

  // `positive`: the positive half of the levels, ascending; the quantiser is odd.
  explicit Codebook(const double* positive, std::size_t count);

  std::size_t size() const { return size_; }
  // Ascending: code 0 is the lowest level.
  const std::array<double, kMaxLevels>& levels() const { return levels_; }
  // The same, rounded once.
  const std::array<float, kMaxLevels>& float_levels() const { return float_levels_; }
  // bounds()[c] is the border between codes c and c+1; infinity for the last code.
  const std::array<double, kMaxLevels>& bounds() const { return bounds_; }

  // The code of the level nearest to `value`, the lower one on a border; 0 for NaN. Exact and in constant
  // time: a grid cell contains at most one border, so the code is the cell's lowest or the one above it.
  std::uint8_t nearest(double value) const {
    const std::uint8_t lowest = lowest_code_[grid_cell(value)];
    return static_cast<std::uint8_t>(lowest + (value > bounds_[lowest] ? 1 : 0));
  }

 private:
  static constexpr double kReach = 5;  // beyond the outermost border at every width
  static constexpr std::size_t kGridCells = 1024;

  // Monotonic, which is all that exactness requires.
  static std::size_t grid_cell(double value) {
    const double low = value > -kReach ? value : -kReach;  // NaN too
    const double inside = low < kReach ? low : kReach;
    return static_cast<std::size_t>((inside + kReach) * (kGridCells / (2 * kReach)));
  }

  std::size_t size_;
  std::array<double, kMaxLevels> levels_{};
  std::array<float, kMaxLevels> float_levels_{};
  std::array<double, kMaxLevels> bounds_{};
  std::array<std::uint8_t, kGridCells + 1> lowest_code_{};
};

// The quantiser of 2, 3, 4, 5, 6 or 8 bits.
const Codebook& codebook(std::int64_t bits);

}  // namespace sluice::quant
