// Any number of tokens, sixteen per tile. Limited by the sums, which must be scaled group by group.
#include <cstring>

#include "backend/cpu/linear/integer/amx_int8_tile.h"
#include "base/integer_cast.h"

#if SLUICE_HAS_AMX

namespace sluice::backend::cpu::linear::integer::amx {

namespace {

// Tiles 0 to 3 are the sums, by digit and rows; 4 and 5 the codes; 6 and 7 the digits of x.
SLUICE_AMX inline void load_codes(const std::uint8_t (*codes)[16][64]) {
  _tile_loadd(4, codes[0], 64);
  _tile_loadd(5, codes[1], 64);
}

// A group's sums for one tile of tokens.
template <int kStep, int kSteps>
SLUICE_AMX inline void sum_group(const std::uint8_t (*codes)[kRows / 16][16][64], const std::byte* x,
                                 std::int32_t (*sums)[kRows][kTokens]) {
  constexpr std::int64_t kDigits = kStep * kTokens;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int s = 0; s < kSteps; ++s) {
    if constexpr (kSteps > 1) load_codes(codes[s]);
    _tile_loadd(6, x + s * 2 * kDigits, 64);
    _tile_loadd(7, x + (s * 2 + 1) * kDigits, 64);
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 5, 6);
    _tile_dpbusd(2, 4, 7);
    _tile_dpbusd(3, 5, 7);
  }
  _tile_stored(0, sums[0][0], 64);
  _tile_stored(1, sums[0][16], 64);
  _tile_stored(2, sums[1][0], 64);
  _tile_stored(3, sums[1][16], 64);
}

class ManyTokens {
 public:
  ManyTokens(const Product& p, std::int64_t tiles, Scratch& scratch)
      : p_(p), tiles_(tiles), scratch_(scratch), rows_(p), tile_bytes_(tile_bytes(p.format)) {}

  template <int kStep, int kSteps>
  SLUICE_AMX void run() {
    const std::int64_t groups = p_.format.groups();
    for (int chain = 0; chain < kChains; ++chain)
      std::memset(scratch_.acc[chain], 0, to_size(tiles_) * sizeof(scratch_.acc[0][0]));
    unpack_group<kStep, kSteps>(0, scratch_.codes[0]);
    std::int64_t done = 0;
    // Chain by chain, so that one set of accumulators stays in the first-level cache.
    for (std::int64_t i = 0, g = 0; i < groups; ++i) {
      const std::int64_t next = g + kChains < groups ? g + kChains : g % kChains + 1;
      if (i + 1 < groups) unpack_group<kStep, kSteps>(next, scratch_.codes[(i + 1) % 2]);
      prefetch_next(p_, rows_, i, groups);
      simd::order_memory();
      if constexpr (kSteps == 1) load_codes(scratch_.codes[i % 2][0]);
      const std::byte* x = p_.x + g * 2 * p_.format.group_size * kTokens;
      for (std::int64_t t = 0; t < tiles_; ++t, ++done) {
        sum_group<kStep, kSteps>(scratch_.codes[i % 2], x + t * tile_bytes_, scratch_.sums[done % 2]);
        simd::order_memory();
        // The previous sums have been stored long before.
        if (done > 0) add_group(waiting_group_, waiting_tile_, scratch_.sums[(done - 1) % 2]);
        waiting_group_ = g;
        waiting_tile_ = t;
      }
      simd::order_memory();
      g = next;
    }
    add_group(waiting_group_, waiting_tile_, scratch_.sums[(done - 1) % 2]);
    for (std::int64_t t = 0; t < tiles_; ++t) store_tile(t);
  }

 private:
  template <int kStep, int kSteps>
  SLUICE_AMX void unpack_group(std::int64_t g, std::uint8_t (*codes)[kRows / 16][16][64]) {
    for (int s = 0; s < kSteps; ++s)
      unpack<kStep>(rows_, g * p_.format.group_size / 2 + s * kStep / 2, codes[s]);
  }

  SLUICE_AMX void add_group(std::int64_t g, std::int64_t tile, const std::int32_t (*sums)[kRows][kTokens]) {
    const auto* x_scales =
        reinterpret_cast<const float*>(p_.x + tile * tile_bytes_ + p_.format.columns * 2 * kTokens);
    const __m512 x_scale = _mm512_loadu_ps(x_scales + g * kTokens);
    const __m512 x_sum = _mm512_loadu_ps(x_scales + (p_.format.groups() + g) * kTokens);
    float(*acc)[kTokens] = scratch_.acc[g % kChains][tile];
    const float* scale_row = p_.scales + g;
    const float* bias_row = p_.biases + g;
    const std::int64_t step = p_.group_step;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r, scale_row += step, bias_row += step) {
      const __m512i high = _mm512_slli_epi32(_mm512_load_si512(sums[0][r]), kDigitBits);
      const __m512i whole = _mm512_add_epi32(high, _mm512_load_si512(sums[1][r]));
      const __m512 dot = _mm512_mul_ps(_mm512_cvtepi32_ps(whole), x_scale);
      __m512 sum = _mm512_load_ps(acc[r]);
      sum = _mm512_fmadd_ps(_mm512_set1_ps(*scale_row), dot, sum);
      sum = _mm512_fmadd_ps(_mm512_set1_ps(*bias_row), x_sum, sum);
      _mm512_store_ps(acc[r], sum);
    }
  }

  SLUICE_AMX void store_tile(std::int64_t tile) {
    for (int half = 0; half < kRows; half += 16) {
      __m512i v[16];
      for (int r = 0; r < 16; ++r) {
        __m512 chain[kChains];
        for (int c = 0; c < kChains; ++c) chain[c] = _mm512_load_ps(scratch_.acc[c][tile][half + r]);
        v[r] = _mm512_castps_si512(
            _mm512_add_ps(_mm512_add_ps(chain[0], chain[1]), _mm512_add_ps(chain[2], chain[3])));
      }
      simd::transpose(v);
      for (int t = 0; t < kTokens; ++t)
        _mm512_storeu_si512(p_.out + (tile * kTokens + t) * p_.out_step + half, v[t]);
    }
  }

  const Product& p_;
  std::int64_t tiles_;
  Scratch& scratch_;
  RowAddresses rows_;
  std::int64_t tile_bytes_;
  std::int64_t waiting_group_ = 0;  // whose sums are stored but not yet added
  std::int64_t waiting_tile_ = 0;
};

}  // namespace

void multiply_many(const Product& p, std::int64_t tiles, Scratch& scratch) {
  ManyTokens product(p, tiles, scratch);
  if (p.format.group_size == 32) return product.run<32, 1>();
  if (p.format.group_size == 64) return product.run<64, 1>();
  product.run<64, 2>();
}

}  // namespace sluice::backend::cpu::linear::integer::amx

#endif
