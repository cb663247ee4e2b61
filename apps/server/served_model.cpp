#include "server/served_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "server/api_error.h"
#include "sluice/generation_config.h"

namespace sluice::server {

ServedModel ServedModel::unlimited() const {
  ServedModel model = *this;
  model.context = std::numeric_limits<std::int32_t>::max();
  model.prompt_limit = 0;
  return model;
}

void ServedModel::check_name(const std::string& asked) const {
  if (!strict || asked == name || std::find(aliases.begin(), aliases.end(), asked) != aliases.end()) return;
  throw not_found(fmt::format("The model '{}' does not exist; this server has '{}'.", asked, name),
                  "model_not_found");
}

ServedModel serve_model(std::shared_ptr<Engine> engine, const std::filesystem::path& folder,
                        std::string name) {
  ServedModel model;
  model.name = std::move(name);
  model.sampling.temperature = 1;  // the protocols' default
  read_generation_config(folder).apply_to(model.sampling);
  model.context = engine->summary().max_positions;
  model.created = std::time(nullptr);
  model.engine = std::move(engine);
  return model;
}

}  // namespace sluice::server
