// Which modules of a checkpoint are quantised, and how.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "checkpoint/tensor_info.h"
#include "sluice/ops/weight.h"

namespace sluice::checkpoint {

using ops::QuantMode;

using ops::name;

struct QuantParams {
  QuantMode mode = QuantMode::affine;
  int bits = 4;
  int group_size = 64;

  friend bool operator==(const QuantParams&, const QuantParams&) = default;
};

// Weights in E4M3 with one multiplier (`weight_scale_inv`) per block.
struct Fp8Blocks {
  int64_t rows = 128;
  int64_t columns = 128;

  friend bool operator==(const Fp8Blocks&, const Fp8Blocks&) = default;
};

// The `quantization` block of MLX checkpoints, or the `quantization_config` of Hugging Face ones.
class QuantizationPlan {
 public:
  QuantizationPlan(const Json& config, const std::string& where);

  // How the module ("model.layers.0.mlp.gate") is quantised; none if it is not. `has_scales` says whether the
  // checkpoint has the tensor "<module>.scales", which decides for modules that the block does not name.
  std::optional<QuantParams> params(std::string_view module, bool has_scales) const;

  const std::optional<QuantParams>& globals() const { return globals_; }
  const std::optional<Fp8Blocks>& fp8() const { return fp8_; }

 private:
  void parse_mlx(const Json& block, const std::string& place);
  void parse_hugging_face(const Json& block, const std::string& place);

  std::string where_;
  std::optional<QuantParams> globals_;
  std::map<std::string, QuantParams, std::less<>> overrides_;
  std::optional<Fp8Blocks> fp8_;
};

// Throws unless the tensors of a quantised module match its parameters and each other; `biases` is null if
// absent.
void check_quantized(std::string_view module, const QuantParams& params, const TensorInfo& weight,
                     const TensorInfo& scales, const TensorInfo* biases);

}  // namespace sluice::checkpoint
