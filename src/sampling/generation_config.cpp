#include "sluice/generation_config.h"

#include <nlohmann/json.hpp>

#include "base/files/text_file.h"
#include "base/json.h"

namespace sluice {

void GenerationConfig::apply_to(SamplingSettings& settings) const {
  if (temperature) settings.temperature = *temperature;
  if (top_k) settings.top_k = *top_k;
  if (top_p) settings.top_p = *top_p;
  if (min_p) settings.min_p = *min_p;
  if (repetition_penalty) settings.repetition_penalty = *repetition_penalty;
}

GenerationConfig read_generation_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "generation_config.json";
  const auto text = files::read_text_file_if_present(path);
  if (!text) return {};
  const std::string where = path.string();
  const Json json = parse_json(*text, where);
  GenerationConfig config{
      json_optional<double>(json, "temperature", where), json_optional<int>(json, "top_k", where),
      json_optional<double>(json, "top_p", where), json_optional<double>(json, "min_p", where),
      json_optional<double>(json, "repetition_penalty", where)};
  if (!json_get_or(json, "do_sample", true, where)) config.temperature = 0;
  return config;
}

}  // namespace sluice
