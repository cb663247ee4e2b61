#include <fmt/format.h>

#include "base/error.h"
#include "models/model.h"

namespace sluice::models {

namespace {

struct Entry {
  std::string_view model_type;
  Model (*build)(const checkpoint::Config&, checkpoint::Binder&);
};

constexpr Entry kModels[] = {
    {"qwen3_5_moe", build_qwen3_5},     {"qwen3_5_moe_text", build_qwen3_5}, {"qwen3_5", build_qwen3_5},
    {"qwen3_5_text", build_qwen3_5},    {"qwen3_next", build_qwen3_next},    {"qwen3_moe", build_qwen3_moe},
    {"deepseek_v3", build_deepseek_v3},
};

}  // namespace

std::vector<std::string_view> model_types() {
  std::vector<std::string_view> types;
  for (const Entry& entry : kModels) types.push_back(entry.model_type);
  return types;
}

Model build(const checkpoint::Config& config, checkpoint::Binder& binder) {
  const std::string type = config.model_type();
  for (const Entry& entry : kModels) {
    if (entry.model_type != type) continue;
    Model model = entry.build(config, binder);
    model.architecture = type;
    return model;
  }
  fail(ErrorKind::unsupported, "{}: model_type '{}' is not supported; known are {}", config.where(), type,
       fmt::join(model_types(), ", "));
}

}  // namespace sluice::models
