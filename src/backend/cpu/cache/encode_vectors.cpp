// Encodes a vector as codes and a norm: rotate, divide by the norm, nearest level, pack. Threaded over
// vectors.
//
// All in double, although inputs are F32 or BF16: codes must equal the specification's, and a sum that
// cancels to exactly 0 lies on a bound between two codes. Stages add in the specification's order; sums of
// values within 2^19 of each other are exact in any order. The transform is a minor part of the work, and all
// of this a minor part of a step that computes keys and values by matrix products.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/cache/encode_vectors.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <cmath>

#include "backend/cpu/cache/encode_vectors.h"
#include "backend/cpu/cache/hadamard-inl.h"
#include "backend/cpu/cache/signs.h"
#include "base/integer_cast.h"
#include "quant/codebook.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::cache::HWY_NAMESPACE {

using DoubleTag = hn::ScalableTag<double>;

// to = signs * row in double; returns the sum of squares.
HWY_INLINE double widen_signed(const float* HWY_RESTRICT row, const float* HWY_RESTRICT signs,
                               std::size_t count, double* HWY_RESTRICT to) {
  const DoubleTag d;
  const hn::Rebind<float, DoubleTag> half;
  auto squares = hn::Zero(d);
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    auto x = hn::LoadU(half, row + i);
    if (signs != nullptr) x = hn::Mul(x, hn::LoadU(half, signs + i));
    const auto wide = hn::PromoteTo(d, x);
    squares = hn::MulAdd(wide, wide, squares);
    hn::StoreU(wide, d, to + i);
  }
  return hn::GetLane(hn::SumOfLanes(d, squares));
}

HWY_INLINE void find_codes(const quant::Codebook& book, const double* HWY_RESTRICT values, double factor,
                           std::size_t count, std::uint8_t* HWY_RESTRICT codes) {
  for (std::size_t i = 0; i < count; ++i) codes[i] = book.nearest(values[i] * factor);
}

HWY_INLINE double sum_of_squared_levels(const quant::Codebook& book, const std::uint8_t* codes,
                                        std::size_t count) {
  double sums[4] = {};  // four independent chains of additions, to hide their latency
  for (std::size_t i = 0; i < count; i += 4)
    for (std::size_t c = 0; c < 4; ++c) {
      const double level = book.levels()[codes[i + c]];
      sums[c] += level * level;
    }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Eight codes fill kBits bytes.
template <std::size_t kBits>
HWY_INLINE void pack(const std::uint8_t* HWY_RESTRICT codes, std::size_t count, std::uint8_t* to) {
  for (std::size_t i = 0; i < count; i += 8, to += kBits) {
    std::uint64_t stream = 0;
    for (std::size_t c = 0; c < 8; ++c) stream |= std::uint64_t{codes[i + c]} << (c * kBits);
    std::memcpy(to, &stream, kBits);
  }
}

HWY_INLINE void pack(std::int64_t bits, const std::uint8_t* codes, std::size_t count, std::uint8_t* to) {
  switch (bits) {
    case 2:
      return pack<2>(codes, count, to);
    case 3:
      return pack<3>(codes, count, to);
    case 4:
      return pack<4>(codes, count, to);
    case 5:
      return pack<5>(codes, count, to);
    case 6:
      return pack<6>(codes, count, to);
    default:
      return pack<8>(codes, count, to);
  }
}

// Stores BF16 numbers instead of codes; returns the sum of their squares.
HWY_INLINE double store_numbers(const double* HWY_RESTRICT values, double factor, std::size_t count,
                                std::uint8_t* to) {
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const ops::BFloat16 number = ops::to_bfloat16(static_cast<float>(values[i] * factor));
    std::memcpy(to + 2 * i, &number, 2);
    const double stored = ops::to_float(number);
    squares += stored * stored;
  }
  return squares;
}

void encode_all(Context& context, const EncodeCall& call, FunctionRef<EncodeVector(std::int64_t)> vector) {
  const std::size_t width = call.width;
  const float* signs =
      read_signs(call.signs, width, reinterpret_cast<float*>(context.shared_scratch(width * sizeof(float))));
  const auto task = [&](std::int64_t begin, std::int64_t end, int worker) HWY_ATTR {
    std::byte* scratch = context.worker_scratch(worker, width * (sizeof(double) + sizeof(float) + 1));
    auto* values = reinterpret_cast<double*>(scratch);
    auto* row = reinterpret_cast<float*>(values + width);
    auto* codes = reinterpret_cast<std::uint8_t*>(row + width);
    for (std::int64_t i = begin; i < end; ++i) {
      const EncodeVector one = vector(i);
      if (one.x == nullptr) continue;
      load_row(one.x, one.dtype, width, row);
      const double norm = std::sqrt(widen_signed(row, signs, width, values));
      const double factor = norm == 0 ? 0 : 1 / norm;  // a zero vector gets the codes of 0
      hadamard_transform(values, width);
      double squares = 0;
      if (one.bits == 16) {
        squares = store_numbers(values, factor, width, one.codes);
      } else {
        const quant::Codebook& book = quant::codebook(one.bits);
        find_codes(book, values, factor, width, codes);
        pack(one.bits, codes, width, one.codes);
        squares = sum_of_squared_levels(book, codes, width);
      }
      if (call.norm == ops::TurboquantNorm::plain || norm == 0) squares = to_double(width);
      *one.norm = static_cast<float>(norm * std::sqrt(to_double(width) / squares));
    }
  };
  context.pool().parallel_for(0, call.vectors, static_cast<std::int64_t>(1 + 1024 / width), task);
}

}  // namespace sluice::backend::cpu::cache::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu::cache {

HWY_EXPORT(encode_all);

void encode_vectors(Context& context, const EncodeCall& call,
                    FunctionRef<EncodeVector(std::int64_t)> vector) {
  SLUICE_DISPATCH(context, encode_all)(context, call, vector);
}

}  // namespace sluice::backend::cpu::cache
#endif
