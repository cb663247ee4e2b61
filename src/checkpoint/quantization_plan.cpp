#include "checkpoint/quantization_plan.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/quote.h"
#include "quant/formats.h"

namespace sluice::checkpoint {
namespace {

constexpr int kMaxBlock = 1 << 20;

bool contains(const auto& values, const auto& value) {
  return std::find(std::begin(values), std::end(values), value) != std::end(values);
}

// Absent values default to the mode's, never to the block's globals.
QuantParams parse_params(const Json& object, const std::string& place) {
  const auto mode = json_get_or<std::string>(object, "mode", "affine", place);
  const quant::Format* format = quant::find_format(mode);
  if (format == nullptr)
    fail(ErrorKind::unsupported, "{} has mode {}, expected one of {}", place, quote(mode),
         quant::format_names());
  QuantParams params{format->mode, format->bits.front(), format->group_sizes.front()};
  params.bits = json_get_or<int>(object, "bits", params.bits, place);
  params.group_size = json_get_or<int>(object, "group_size", params.group_size, place);
  if (!quant::allows(format->bits, params.bits) || !quant::allows(format->group_sizes, params.group_size))
    fail(ErrorKind::unsupported,
         "{} asks for {} with {} bits in groups of {}, expected {} bits in groups of {}", place, mode,
         params.bits, params.group_size, quant::allowed_text(format->bits),
         quant::allowed_text(format->group_sizes));
  return params;
}

QuantParams parse_override(const Json& object, const std::string& place) {
  // Activations are never quantised here, so settings for them have no effect.
  constexpr std::array<std::string_view, 5> kKnown{"mode", "bits", "group_size", "quantize_input",
                                                   "quantize_activations"};
  for (const auto& item : object.items()) {
    if (!contains(kKnown, item.key())) {
      fail(ErrorKind::unsupported, "{} has the unknown field {}", place, quote(item.key()));
    }
  }
  return parse_params(object, place);
}

// The block at the top level, or in the text_config of a multimodal wrapper.
const Json* find_block(const Json& config, std::string_view key, const std::string& where) {
  if (const Json* block = json_find(config, key, where)) return block;
  const Json* text = json_find(config, "text_config", where);
  return text == nullptr ? nullptr : json_find(*text, key, where + ": 'text_config'");
}

}  // namespace

QuantizationPlan::QuantizationPlan(const Json& config, const std::string& where) : where_(where) {
  if (const Json* block = find_block(config, "quantization", where)) {
    parse_mlx(*block, where + ": 'quantization'");
  } else if (const Json* block = find_block(config, "quantization_config", where)) {
    const std::string place = where + ": 'quantization_config'";
    // MLX writes its block under both names; only Hugging Face's has a method.
    if (json_find(*block, "quant_method", place) == nullptr) {
      parse_mlx(*block, place);
    } else {
      parse_hugging_face(*block, place);
    }
  }
}

void QuantizationPlan::parse_mlx(const Json& block, const std::string& place) {
  globals_ = parse_params(block, place);
  for (const auto& [module, value] : block.items()) {
    // A bool adds nothing to the presence of scales; other values are globals or notes.
    if (value.is_object()) {
      overrides_.emplace(module, parse_override(value, fmt::format("{}: {}", place, quote(module))));
    }
  }
}

void QuantizationPlan::parse_hugging_face(const Json& block, const std::string& place) {
  const auto method = json_get<std::string>(block, "quant_method", place);
  if (method == "mxfp4" || method == "mxfp8") {
    globals_ = parse_params(Json{{"mode", method}}, place);
    return;
  }
  if (method != "fp8") {
    fail(ErrorKind::unsupported, "{} has quant_method {}, expected fp8, mxfp4 or mxfp8", place,
         quote(method));
  }
  const auto format = json_get_or<std::string>(block, "fmt", "e4m3", place);
  if (format != "e4m3") {
    fail(ErrorKind::unsupported, "{} has the fp8 format {}, expected e4m3", place, quote(format));
  }
  const auto size = json_get<std::vector<int>>(block, "weight_block_size", place);
  if (size.size() != 2 || size[0] < 1 || size[1] < 1 || size[0] > kMaxBlock || size[1] > kMaxBlock) {
    fail(ErrorKind::checkpoint, "{} has weight_block_size {}, expected two positive sizes", place,
         quote(block.at("weight_block_size").dump()));
  }
  fp8_ = Fp8Blocks{size[0], size[1]};
}

std::optional<QuantParams> QuantizationPlan::params(std::string_view module, bool has_scales) const {
  const auto override = overrides_.find(module);
  if (override != overrides_.end() && !has_scales) {
    fail(ErrorKind::checkpoint, "{} says that {} is quantised, but the checkpoint has no {}", where_,
         quote(module), quote(std::string(module) + ".scales"));
  }
  if (!has_scales) return std::nullopt;
  if (override != overrides_.end()) return override->second;
  if (!globals_) {
    fail(ErrorKind::checkpoint, "the checkpoint has {}, but {} does not say how it is quantised",
         quote(std::string(module) + ".scales"), where_);
  }
  return globals_;
}

void check_quantized(std::string_view module, const QuantParams& params, const TensorInfo& weight,
                     const TensorInfo& scales, const TensorInfo* biases) {
  const quant::Format& format = quant::format_of(params.mode);
  const auto refuse = [&](std::string_view problem) {
    fail(ErrorKind::checkpoint, "{} ({} with {} bits in groups of {}) {}", quote(module), name(params.mode),
         params.bits, params.group_size, problem);
  };
  if (weight.dtype != FileDType::u32)
    refuse(fmt::format("has a weight of {}, expected U32", name(weight.dtype)));
  const bool float_scales =
      contains(std::array{FileDType::f32, FileDType::f16, FileDType::bf16}, scales.dtype);
  const bool floats = format.scales == quant::Plane::floats;
  if (floats ? !float_scales : scales.dtype != FileDType::u8) {
    refuse(
        fmt::format("has scales of {}, expected {}", name(scales.dtype), floats ? "F32, F16 or BF16" : "U8"));
  }
  if ((format.biases != quant::Plane::none) != (biases != nullptr))
    refuse(biases == nullptr ? "lacks its biases" : "has biases, expected none");
  if (biases != nullptr && (biases->dtype != scales.dtype || biases->shape != scales.shape)) {
    refuse(fmt::format("has biases of {} [{}], but scales of {} [{}]", name(biases->dtype),
                       fmt::join(biases->shape, ", "), name(scales.dtype), fmt::join(scales.shape, ", ")));
  }
  // Bounds every dimension by the file's size, so the products below cannot overflow.
  if (size_bytes(weight).value_or(0) == 0) refuse("has an empty weight");
  const bool same_rows = weight.shape.size() >= 2 && weight.shape.size() == scales.shape.size() &&
                         std::equal(weight.shape.begin(), weight.shape.end() - 1, scales.shape.begin());
  if (!same_rows || weight.shape.back() * 32 != scales.shape.back() * params.group_size * params.bits) {
    refuse(fmt::format("has a weight of shape [{}], which scales of shape [{}] do not fit",
                       fmt::join(weight.shape, ", "), fmt::join(scales.shape, ", ")));
  }
}

}  // namespace sluice::checkpoint
