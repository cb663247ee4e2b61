#include "runner/random_tensor.h"

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/integer_cast.h"
#include "quant/formats.h"

namespace sluice::runner {

using ops::DType;

std::uint64_t Random::bits() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double Random::uniform() {
  return to_double(bits() >> 11) * 0x1p-53;
}

double Random::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

void set(HostTensor& tensor, std::int64_t i, double value) {
  switch (tensor.dtype) {
    case DType::f32:
      tensor.data<float>()[i] = static_cast<float>(value);
      return;
    case DType::bf16:
      tensor.data<ops::BFloat16>()[i] = ops::to_bfloat16(static_cast<float>(value));
      return;
    case DType::f16:
      tensor.data<ops::Float16>()[i] = ops::to_float16(static_cast<float>(value));
      return;
    case DType::i32:
      tensor.data<std::int32_t>()[i] = static_cast<std::int32_t>(value);
      return;
    case DType::u32:
      tensor.data<std::uint32_t>()[i] = static_cast<std::uint32_t>(value);
      return;
    case DType::u8:
      tensor.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(value);
      return;
  }
}

namespace {

template <class F>
HostTensor fill(DType type, const ops::Shape& shape, F&& f) {
  HostTensor tensor(type, shape);
  const std::int64_t count = shape.elements();
  for (std::int64_t i = 0; i < count; ++i) set(tensor, i, f());
  return tensor;
}

}  // namespace

HostTensor normal(Random& random, DType type, const ops::Shape& shape, double scale, double mean) {
  return fill(type, shape, [&] { return mean + scale * random.normal(); });
}

HostTensor uniform(Random& random, DType type, const ops::Shape& shape, double low, double high) {
  return fill(type, shape, [&] { return random.uniform(low, high); });
}

HostTensor constant(DType type, const ops::Shape& shape, double value) {
  return fill(type, shape, [&] { return value; });
}

HostTensor integers(Random& random, const ops::Shape& shape, std::int64_t below) {
  return fill(DType::i32, shape, [&] { return to_double(random.integer(below)); });
}

HostTensor indices(std::initializer_list<std::int32_t> values) {
  HostTensor tensor(DType::i32, {std::ssize(values)});
  std::int64_t i = 0;
  for (const std::int32_t value : values) set(tensor, i++, value);
  return tensor;
}

HostTensor random_bytes(Random& random, DType type, const ops::Shape& shape) {
  HostTensor tensor(type, shape);
  for (std::byte& byte : tensor.bytes) byte = static_cast<std::byte>(random.bits() & 0xff);
  return tensor;
}

std::string label(const WeightFormat& format) {
  if (!format.quantized) return fmt::format("dense {}", name(format.dtype));
  if (quant::format_of(format.mode).bits.size() == 1) return std::string(ops::name(format.mode));
  const std::string mixed =
      format.bias_dtype == format.dtype ? "" : fmt::format(" and {}", name(format.bias_dtype));
  return fmt::format("{}-bit g{} {}{}", format.bits, format.group_size, name(format.dtype), mixed);
}

void add_weight(OpFile& file, Random& random, const std::string& name, const ops::Shape& shape,
                const WeightFormat& format, double scale) {
  if (!format.quantized) {
    file.tensors[name] = normal(random, format.dtype, shape, scale);
    return;
  }
  ops::Shape packed = shape;
  packed[shape.rank() - 1] = shape.back() * format.bits / 32;
  ops::Shape groups = shape;
  groups[shape.rank() - 1] = shape.back() / format.group_size;
  HostTensor weight = random_bytes(random, DType::u32, packed);
  file.attributes[name + ".mode"] = std::string(ops::name(format.mode));
  file.attributes[name + ".bits"] = std::to_string(format.bits);
  file.attributes[name + ".group_size"] = std::to_string(format.group_size);
  const quant::Format& of = quant::format_of(format.mode);
  if (of.scales == quant::Plane::floats) {
    // Levels spread evenly over about +-2*scale, with scales of either sign as MLX writes them.
    const double step = 4 * scale / ((1 << format.bits) - 1);
    HostTensor scales(format.dtype, groups);
    HostTensor biases(format.bias_dtype, groups);
    for (std::int64_t i = 0; i < groups.elements(); ++i) {
      const double s = step * random.uniform(0.5, 1.5) * (random.integer(2) == 0 ? 1 : -1);
      set(scales, i, s);
      set(biases, i, -s * ((1 << format.bits) - 1) * random.uniform(0.4, 0.6));
    }
    file.tensors[name + ".scales"] = std::move(scales);
    file.tensors[name + ".biases"] = std::move(biases);
  } else {
    HostTensor scales(DType::u8, groups);
    for (std::byte& byte : scales.bytes) {
      // E8M0 near 2^-4, or E4M3 near 2^-2: exponents as in trained models.
      const bool e4m3 = of.byte_scales == quant::ScaleType::e4m3;
      byte = static_cast<std::byte>(e4m3 ? 0x20 + random.integer(0x18) : 121 + random.integer(5));
    }
    if (of.storage(format.bits) == quant::Storage::fp8)  // 0x7f and 0xff are NaN
      for (std::byte& byte : weight.bytes)
        if ((byte & std::byte{0x7f}) == std::byte{0x7f}) byte ^= std::byte{0x40};
    file.tensors[name + ".scales"] = std::move(scales);
  }
  file.tensors[name + ".weight"] = std::move(weight);
}

}  // namespace sluice::runner
