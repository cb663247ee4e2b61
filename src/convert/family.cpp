#include "convert/family.h"

#include <string>

#include "base/error.h"
#include "base/quote.h"

namespace sluice::convert {

Family family_of(const checkpoint::Config& config) {
  const std::string type = config.model_type();
  if (type == "qwen3_5" || type == "qwen3_5_moe" || type == "qwen3_5_text" || type == "qwen3_5_moe_text")
    return Family::qwen3_5;
  if (type == "qwen3_next") return Family::qwen3_next;
  if (type == "qwen3_moe") return Family::qwen3_moe;
  if (type == "deepseek_v3") return Family::deepseek_v3;
  fail(ErrorKind::unsupported,
       "{}: the model type {} cannot be converted, expected qwen3_5_moe, qwen3_5, qwen3_next, qwen3_moe or "
       "deepseek_v3",
       config.where(), quote(type));
}

const std::vector<std::string_view>& eight_bit_modules(Family family) {
  static const std::vector<std::string_view> both = {"mlp.gate", "shared_expert_gate"};
  static const std::vector<std::string_view> router = {"mlp.gate"};
  static const std::vector<std::string_view> none;
  if (family == Family::qwen3_moe) return router;
  return family == Family::deepseek_v3 ? none : both;
}

bool keeps_dtype(Family family, std::string_view parameter) {
  if (family == Family::qwen3_5) return parameter.ends_with("A_log");
  return family == Family::deepseek_v3 && parameter.ends_with("e_score_correction_bias");
}

}  // namespace sluice::convert
