// Up to eight tokens: a tile of sums has the columns [digit][group][token], so that one tile of codes is
// multiplied once, and several groups' sums leave the tile together. Bound by reading the weights.
#include <cstring>

#include "backend/cpu/amx_tile.h"

#if SLUICE_HAS_AMX

namespace sluice::backend::cpu::amx {

namespace {

// kWidth tokens, of kGroups groups at once.
template <int kWidth>
constexpr int kGroups = static_cast<int>(kFew) / kWidth;

struct Packed {
  const std::byte* digits;
  const float* scales;  // [group][token], kWidth tokens
  const float* sums;
};

// `row` of a batch of groups from `group` on.
template <int kWidth>
SLUICE_AMX inline void add_batch(const Product& p, const Packed& x, std::int64_t group,
                                 const std::int32_t (*sums)[kTokens], float* acc) {
  const __m256 x_scales = _mm256_loadu_ps(x.scales + group * kWidth);
  const __m256 x_sums = _mm256_loadu_ps(x.sums + group * kWidth);
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i owner = _mm256_srli_epi32(lane, kWidth == 1 ? 0 : kWidth == 2 ? 1 : kWidth == 4 ? 2 : 3);
  const float* scale_row = p.scales + group;
  const float* bias_row = p.biases + group;
  const std::int64_t step = p.group_step;
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r, scale_row += step, bias_row += step) {
    const __m256i high = _mm256_load_si256(reinterpret_cast<const __m256i*>(sums[r]));
    const __m256i low = _mm256_load_si256(reinterpret_cast<const __m256i*>(sums[r] + kFew));
    const __m256 dot = _mm256_mul_ps(
        _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_slli_epi32(high, kDigitBits), low)), x_scales);
    if constexpr (kWidth == 1) {
      // Eight groups are two for each of the four sums.
      float* to = acc + r * kChains;
      __m128 sum = _mm_load_ps(to);
      sum = _mm_fmadd_ps(_mm_loadu_ps(scale_row), _mm256_castps256_ps128(dot), sum);
      sum = _mm_fmadd_ps(_mm_loadu_ps(bias_row), _mm256_castps256_ps128(x_sums), sum);
      sum = _mm_fmadd_ps(_mm_loadu_ps(scale_row + 4), _mm256_extractf128_ps(dot, 1), sum);
      sum = _mm_fmadd_ps(_mm_loadu_ps(bias_row + 4), _mm256_extractf128_ps(x_sums, 1), sum);
      _mm_store_ps(to, sum);
    } else {
      float* to = acc + r * kChains * kWidth + group % kChains * kWidth;
      const __m256 scale = _mm256_permutevar8x32_ps(_mm256_loadu_ps(scale_row), owner);
      const __m256 bias = _mm256_permutevar8x32_ps(_mm256_loadu_ps(bias_row), owner);
      const __m256 sum = _mm256_fmadd_ps(scale, dot, _mm256_load_ps(to));
      _mm256_store_ps(to, _mm256_fmadd_ps(bias, x_sums, sum));
    }
  }
}

template <int kStep, int kSteps, int kWidth>
SLUICE_AMX void multiply(const Product& p, std::int64_t tokens, Scratch& scratch) {
  const RowAddresses rows(p);
  const std::int64_t groups = p.format.groups();
  const std::int64_t steps = groups * kSteps;
  const auto* x_scales = reinterpret_cast<const float*>(p.x + steps * kStep * kTokens);
  const Packed x{p.x, x_scales, x_scales + (groups + kFew) * kWidth};
  float* acc = scratch.acc[0][0][0];
  std::memset(acc, 0, kRows * kChains * kWidth * sizeof(float));
  unpack<kStep>(rows, 0, scratch.codes[0][0]);
  _tile_zero(0);
  _tile_zero(1);
  std::int64_t begin = 0;   // of the batch in the tiles
  std::int64_t ready = -1;  // of a batch whose sums are stored
  for (std::int64_t i = 0; i < steps; ++i) {
    if (i + 1 < steps) unpack<kStep>(rows, (i + 1) * kStep / 2, scratch.codes[0][(i + 1) % 2]);
    prefetch_next(p, rows, i, steps);
    order_memory();
    _tile_loadd(4, scratch.codes[0][i % 2][0], 64);
    _tile_loadd(5, scratch.codes[0][i % 2][1], 64);
    _tile_loadd(6, x.digits + i * kStep * kTokens, 64);
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 5, 6);
    const std::int64_t end = (i + 1) / kSteps;
    const bool whole = (i + 1) % kSteps == 0 && (end - begin == kGroups<kWidth> || end == groups);
    if (!whole) continue;
    auto* sums = scratch.sums[begin / kGroups<kWidth> % 2][0];
    _tile_stored(0, sums[0], 64);
    _tile_stored(1, sums[16], 64);
    _tile_zero(0);
    _tile_zero(1);
    order_memory();
    // The sums before these have long arrived.
    if (ready >= 0) add_batch<kWidth>(p, x, ready, scratch.sums[ready / kGroups<kWidth> % 2][0], acc);
    ready = begin;
    begin = end;
  }
  add_batch<kWidth>(p, x, ready, scratch.sums[ready / kGroups<kWidth> % 2][0], acc);
  for (std::int64_t t = 0; t < tokens; ++t)
    for (std::int64_t r = 0; r < kRows; ++r) {
      const float* chain = acc + r * kChains * kWidth + t;
      p.out[t * p.out_step + r] = (chain[0] + chain[kWidth]) + (chain[2 * kWidth] + chain[3 * kWidth]);
    }
}

template <int kStep, int kSteps>
void by_width(const Product& p, std::int64_t tokens, Scratch& scratch) {
  const auto some = tokens == 1   ? multiply<kStep, kSteps, 1>
                    : tokens == 2 ? multiply<kStep, kSteps, 2>
                    : tokens <= 4 ? multiply<kStep, kSteps, 4>
                                  : multiply<kStep, kSteps, 8>;
  some(p, tokens, scratch);
}

}  // namespace

void multiply_few(const Product& p, std::int64_t tokens, Scratch& scratch) {
  const std::int64_t group = p.format.group_size;
  (group == 32 ? by_width<32, 1> : group == 64 ? by_width<64, 1> : by_width<64, 2>)(p, tokens, scratch);
}

}  // namespace sluice::backend::cpu::amx

#endif
