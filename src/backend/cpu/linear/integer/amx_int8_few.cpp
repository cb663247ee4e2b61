// Five to eight tokens: a tile of sums has the columns [digit][token], so a tile of codes is multiplied once.
// Limited by reading the weights.
#include <cstring>

#include "backend/cpu/linear/integer/amx_int8_tile.h"

#if SLUICE_HAS_AMX

namespace sluice::backend::cpu::linear::integer::amx {

namespace {

struct Packed {
  const std::byte* digits;
  const float* scales;  // [group][token]
  const float* sums;
};

// Adds a group's sums for all rows.
SLUICE_AMX inline void add_group(const Product& p, const Packed& x, std::int64_t group,
                                 const std::int32_t (*sums)[kTokens], float (*acc)[kChains][kFew]) {
  const __m256 x_scales = _mm256_loadu_ps(x.scales + group * kFew);
  const __m256 x_sums = _mm256_loadu_ps(x.sums + group * kFew);
  const float* scale_row = p.scales + group;
  const float* bias_row = p.biases + group;
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r, scale_row += p.group_step, bias_row += p.group_step) {
    const __m256i high = _mm256_load_si256(reinterpret_cast<const __m256i*>(sums[r]));
    const __m256i low = _mm256_load_si256(reinterpret_cast<const __m256i*>(sums[r] + kFew));
    const __m256i whole = _mm256_add_epi32(_mm256_slli_epi32(high, kDigitBits), low);
    const __m256 dot = _mm256_mul_ps(_mm256_cvtepi32_ps(whole), x_scales);
    float* to = acc[r][group % kChains];
    const __m256 sum = _mm256_fmadd_ps(_mm256_set1_ps(*scale_row), dot, _mm256_load_ps(to));
    _mm256_store_ps(to, _mm256_fmadd_ps(_mm256_set1_ps(*bias_row), x_sums, sum));
  }
}

template <int kStep, int kSteps>
SLUICE_AMX void multiply(const Product& p, std::int64_t tokens, Scratch& scratch) {
  const RowAddresses rows(p);
  const std::int64_t groups = p.format.groups();
  const std::int64_t steps = groups * kSteps;
  const auto* x_scales = reinterpret_cast<const float*>(p.x + steps * kStep * kTokens);
  const Packed x{p.x, x_scales, x_scales + groups * kFew};
  auto* acc = reinterpret_cast<float(*)[kChains][kFew]>(scratch.acc);
  std::memset(acc, 0, kRows * sizeof(acc[0]));
  unpack<kStep>(rows, 0, scratch.codes[0][0]);
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t group = i / kSteps;
    if (i % kSteps == 0) {
      _tile_zero(0);
      _tile_zero(1);
    }
    if (i + 1 < steps) unpack<kStep>(rows, (i + 1) * kStep / 2, scratch.codes[0][(i + 1) % 2]);
    prefetch_next(p, rows, i, steps);
    simd::order_memory();
    _tile_loadd(4, scratch.codes[0][i % 2][0], 64);
    _tile_loadd(5, scratch.codes[0][i % 2][1], 64);
    _tile_loadd(6, x.digits + i * kStep * kTokens, 64);
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 5, 6);
    if ((i + 1) % kSteps != 0) continue;
    auto* sums = scratch.sums[group % 2][0];
    _tile_stored(0, sums[0], 64);
    _tile_stored(1, sums[16], 64);
    simd::order_memory();
    // The previous group's sums have been stored long before.
    if (group > 0) add_group(p, x, group - 1, scratch.sums[(group - 1) % 2][0], acc);
  }
  add_group(p, x, groups - 1, scratch.sums[(groups - 1) % 2][0], acc);
  for (std::int64_t t = 0; t < tokens; ++t)
    for (std::int64_t r = 0; r < kRows; ++r)
      p.out[t * p.out_step + r] = (acc[r][0][t] + acc[r][1][t]) + (acc[r][2][t] + acc[r][3][t]);
}

}  // namespace

void multiply_few(const Product& p, std::int64_t tokens, Scratch& scratch) {
  const std::int64_t group = p.format.group_size;
  (group == 32 ? multiply<32, 1> : group == 64 ? multiply<64, 1> : multiply<64, 2>)(p, tokens, scratch);
}

}  // namespace sluice::backend::cpu::linear::integer::amx

#endif
