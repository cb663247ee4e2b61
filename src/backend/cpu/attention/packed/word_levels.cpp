#include "backend/cpu/attention/packed/word_levels.h"

#include <hwy/targets.h>

#include <array>
#include <cmath>

#include "base/integer_cast.h"
#include "quant/codebook.h"

namespace sluice::backend::cpu::attention::packed {

namespace {

// The best factor for each width: the errors are 6e-8, 5e-6, 3e-5, 6e-5, 9e-5 and 1.4e-4 of the levels' root
// mean square.
double factor_of(std::int64_t bits) {
  switch (bits) {
    case 2:
      return 5214.45;
    case 3:
      return 3765.88;
    case 4:
      return 2857.81;
    case 5:
      return 2474.88;
    case 6:
      return 2114.77;
    default:
      return 1773.28;
  }
}

WordLevels make(std::int64_t bits) {
  WordLevels table{};
  table.factor = factor_of(bits);
  const auto& levels = quant::codebook(bits).levels();
  for (std::size_t i = 0; i < std::size(table.words); ++i) {
    const auto word =
        static_cast<std::int16_t>(std::lround(table.factor * levels[i & ((std::size_t{1} << bits) - 1)]));
    table.words[i] = word;
    table.low[i] = static_cast<std::uint8_t>(word);
    table.high[i] = static_cast<std::uint8_t>(word >> 8);
  }
  return table;
}

}  // namespace

const WordLevels& word_levels(std::int64_t bits) {
  static const std::array<WordLevels, 6> tables{make(2), make(3), make(4), make(5), make(6), make(8)};
  return tables[to_size(bits == 8 ? 5 : bits - 2)];
}

bool knows_words(Isa isa, std::int64_t bits, std::size_t width) {
  if (!HWY_ARCH_X86) return false;
  switch (bits) {
    case 2:
      return width % 256 == 0;
    case 4:
    case 8:
      return width % 128 == 0;
    case 3:
    case 5:
    case 6:
      return width % 32 == 0 && (highway_targets(isa) & HWY_AVX3_DL) != 0;
    default:
      return false;
  }
}

}  // namespace sluice::backend::cpu::attention::packed
