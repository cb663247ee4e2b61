#include "quant/affine.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "quant/bit_stream.h"
#include "quant/formats.h"
#include "tensor/element.h"

namespace sluice::quant {

namespace {

using ops::BFloat16;
using ops::DType;
using ops::Float16;

constexpr std::int64_t kMaxGroup = 128;

template <class T>
T narrow(float value);
template <>
float narrow(float value) {
  return value;
}
template <>
BFloat16 narrow(float value) {
  return ops::to_bfloat16(value);
}
template <>
Float16 narrow(float value) {
  return ops::to_float16(value);
}

template <class T>
float load(const std::byte* from, std::int64_t i) {
  T value;
  std::memcpy(&value, from + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return ops::to_float(value);
}

template <class T>
void store(float value, std::byte* to, std::int64_t i) {
  const T narrowed = narrow<T>(value);
  std::memcpy(to + i * static_cast<std::int64_t>(sizeof(T)), &narrowed, sizeof(T));
}

struct Range {
  float low;
  float high;
};

// Eight running extremes, which compilers vectorise.
Range range_of(const float* group, std::int64_t count) {
  constexpr std::int64_t kWays = 8;
  float low[kWays];
  float high[kWays];
  std::fill(low, low + kWays, std::numeric_limits<float>::infinity());
  std::fill(high, high + kWays, -std::numeric_limits<float>::infinity());
  for (std::int64_t i = 0; i < count; i += kWays)
    for (std::int64_t j = 0; j < kWays; ++j) {
      low[j] = group[i + j] < low[j] ? group[i + j] : low[j];
      high[j] = group[i + j] > high[j] ? group[i + j] : high[j];
    }
  return {*std::min_element(low, low + kWays), *std::max_element(high, high + kWays)};
}

struct Scale {
  float scale;
  float bias;
};

// The end of the range with the larger magnitude is represented exactly, and so is zero; the scale is
// negative if that end is the upper one.
Scale choose_scale(const Range& range, float levels) {
  const bool from_low = std::abs(range.low) > std::abs(range.high);
  const float step = std::max((range.high - range.low) / levels, 1e-7f);
  const float edge = from_low ? range.low : range.high;
  const float scale = from_low ? step : -step;
  const float edge_code = std::rint(edge / scale);
  if (edge_code == 0) return {scale, 0};
  return {edge / edge_code, edge};
}

void choose_codes(const float* group, std::int64_t count, const Scale& by, float levels,
                  std::uint8_t* codes) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float code = std::rint((group[i] - by.bias) / by.scale);
    const float floor = code > 0 ? code : 0;  // NaN too
    codes[i] = static_cast<std::uint8_t>(floor < levels ? floor : levels);
  }
}

// Eight codes fill `bits` bytes exactly.
void pack(const std::uint8_t* codes, std::int64_t count, int bits, std::byte* to) {
  for (std::int64_t i = 0; i < count; i += 8, to += bits) {
    std::uint64_t packed = 0;
    for (int j = 0; j < 8; ++j) packed |= static_cast<std::uint64_t>(codes[i + j]) << (j * bits);
    for (int j = 0; j < bits; ++j) to[j] = static_cast<std::byte>(packed >> (8 * j));
  }
}

template <class T>
void encode(const AffineFormat& format, const ValueRows& shape, const std::byte* values, std::byte* words,
            std::byte* scales, std::byte* biases) {
  const auto levels = static_cast<float>((1 << format.bits) - 1);
  const std::int64_t groups = shape.rows * shape.columns / format.group_size;
  float group[kMaxGroup];
  std::uint8_t codes[kMaxGroup];
  for (std::int64_t g = 0; g < groups; ++g) {
    for (std::int64_t i = 0; i < format.group_size; ++i)
      group[i] = load<T>(values, g * format.group_size + i);
    const Scale chosen = choose_scale(range_of(group, format.group_size), levels);
    choose_codes(group, format.group_size, chosen, levels, codes);
    pack(codes, format.group_size, format.bits, words + g * format.group_size / 8 * format.bits);
    store<T>(chosen.scale, scales, g);
    store<T>(chosen.bias, biases, g);
  }
}

template <class T>
void decode(const AffineFormat& format, const ValueRows& shape, const std::byte* words,
            const std::byte* scales, const std::byte* biases, std::byte* values) {
  const std::int64_t groups = shape.rows * shape.columns / format.group_size;
  for (std::int64_t g = 0; g < groups; ++g) {
    const float scale = load<T>(scales, g);
    const float bias = load<T>(biases, g);
    for (std::int64_t i = g * format.group_size; i < (g + 1) * format.group_size; ++i) {
      const T product = narrow<T>(static_cast<float>(read_code(words, i, format.bits)) * scale);
      store<T>(ops::to_float(product) + bias, values, i);
    }
  }
}

void check(const AffineFormat& format, const ValueRows& shape) {
  if (!allows(kAffineBits, format.bits))
    fail(ErrorKind::input, "affine quantisation has {} bits, allowed is {}", format.bits,
         allowed_text(kAffineBits));
  if (!allows(kAffineGroups, format.group_size))
    fail(ErrorKind::input, "affine quantisation has groups of {}, allowed is {}", format.group_size,
         allowed_text(kAffineGroups));
  if (shape.rows < 0 || shape.columns < 0 || shape.columns % format.group_size != 0)
    fail(ErrorKind::input, "a row of {} values is not a whole number of groups of {}", shape.columns,
         format.group_size);
  if (shape.type != DType::f32 && shape.type != DType::bf16 && shape.type != DType::f16)
    fail(ErrorKind::input, "values of type {} cannot be quantised, allowed is F32, BF16 or F16",
         name(shape.type));
}

}  // namespace

void encode_affine(const AffineFormat& format, const ValueRows& shape, const std::byte* values,
                   std::byte* words, std::byte* scales, std::byte* biases) {
  check(format, shape);
  const auto by_type = shape.type == DType::f32    ? encode<float>
                       : shape.type == DType::bf16 ? encode<BFloat16>
                                                   : encode<Float16>;
  by_type(format, shape, values, words, scales, biases);
}

void decode_affine(const AffineFormat& format, const ValueRows& shape, const std::byte* words,
                   const std::byte* scales, const std::byte* biases, std::byte* values) {
  check(format, shape);
  const auto by_type = shape.type == DType::f32    ? decode<float>
                       : shape.type == DType::bf16 ? decode<BFloat16>
                                                   : decode<Float16>;
  by_type(format, shape, words, scales, biases, values);
}

Storage affine_storage(int bits) {
  switch (bits) {
    case 2:
      return Storage::affine2;
    case 3:
      return Storage::affine3;
    case 4:
      return Storage::affine4;
    case 5:
      return Storage::affine5;
    case 6:
      return Storage::affine6;
    case 8:
      return Storage::affine8;
    default:
      fail(ErrorKind::internal, "a weight of {} bits passed the checks", bits);
  }
}

double affine_value(const ops::Weight& w, std::int64_t row, std::int64_t i) {
  const auto* codes = static_cast<const std::byte*>(w.values.data) + row * w.values.strides[0] * 4;
  const auto part = [&](const ops::ConstView& plane) {
    return ops::load(plane.data, plane.dtype, row * plane.strides[0] + i / w.group_size);
  };
  return read_code(codes, i, w.bits) * part(w.scales) + part(w.biases);
}

}  // namespace sluice::quant
