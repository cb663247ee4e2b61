#include <fmt/format.h>

#include "base/error.h"
#include "models/family.h"

namespace sluice::models {

// Each is defined in its own file.
extern const Family kQwen35, kQwen3Next, kQwen3Moe, kDeepseekV3;

namespace {
constexpr const Family* kFamilies[] = {&kQwen35, &kQwen3Next, &kQwen3Moe, &kDeepseekV3};
}  // namespace

std::span<const Family* const> families() {
  return kFamilies;
}

std::vector<std::string_view> model_types() {
  std::vector<std::string_view> types;
  for (const Family* family : kFamilies)
    types.insert(types.end(), family->model_types.begin(), family->model_types.end());
  return types;
}

const Family& family_of(const checkpoint::Config& config) {
  const std::string type = config.model_type();
  for (const Family* family : kFamilies)
    for (const std::string_view known : family->model_types)
      if (known == type) return *family;
  fail(ErrorKind::unsupported, "{}: model_type '{}' is not supported; known are {}", config.where(), type,
       fmt::join(model_types(), ", "));
}

Model build(const checkpoint::Config& config, checkpoint::Binder& binder) {
  Model model = family_of(config).build(config, binder);
  model.architecture = config.model_type();
  return model;
}

}  // namespace sluice::models
