#include "convert/other_files.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/files/file_writer.h"
#include "base/files/mapped_file.h"

namespace sluice::convert {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kGeneration = "generation_config.json";

// Adds the stop ids of the generation config, because mlx-lm reads config.json only.
void adopt_stop_ids(const fs::path& in, Json& config) {
  std::error_code ignored;
  if (!fs::exists(in / kGeneration, ignored)) return;
  const Json generation = read_json_file(in / kGeneration);
  const Json* ids = json_find(generation, "eos_token_id", (in / kGeneration).string());
  if (ids == nullptr || *ids == 0 || *ids == Json::array()) return;
  config["eos_token_id"] = *ids;
}

void set_if_absent(Json& object, const char* key, const Json& value) {
  if (object.value(key, Json()).is_null()) object[key] = value;
}

// Adds keys that mlx-lm reads where transformers 5 writes others: the parts of rope_parameters, and the
// distance between layers of full attention in place of a list of all layers.
void write_old_keys(Json& config) {
  if (const auto found = config.find("rope_parameters"); found != config.end() && found->is_object()) {
    Json scaling = *found;
    for (const char* key : {"rope_theta", "partial_rotary_factor"}) {
      if (scaling.contains(key)) set_if_absent(config, key, scaling[key]);
      scaling.erase(key);
    }
    const Json type = scaling.value("rope_type", Json("default"));
    scaling["type"] = type;
    if (type != "default") set_if_absent(config, "rope_scaling", scaling);
  }
  const auto types = config.find("layer_types");
  if (types == config.end() || !types->is_array()) return;
  const auto is_full = [](const Json& type) { return type == "full_attention"; };
  const auto first = std::find_if(types->begin(), types->end(), is_full);
  if (first != types->end()) set_if_absent(config, "full_attention_interval", first - types->begin() + 1);
}

bool is_text_file(std::string_view name) {
  constexpr std::array<std::string_view, 6> kNames = {kGeneration,         "special_tokens_map.json",
                                                      "added_tokens.json", "vocab.json",
                                                      "merges.txt",        "chat_template.json"};
  return name.starts_with("tokenizer") || name == "chat_template.jinja" ||
         std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

}  // namespace

void write_config(const fs::path& in, const fs::path& out, Json config, const Json& quantization) {
  for (const char* stale : {"_name_or_path", "vision_config", "quantization_config"}) config.erase(stale);
  const auto text = config.find("text_config");
  const bool wrapped = text != config.end() && text->is_object();
  if (wrapped) text->erase("quantization_config");
  // mlx-lm identifies a text-only export by the wrapper's name.
  constexpr std::string_view kText = "_text";
  if (std::string type = config.at("model_type"); type.ends_with(kText))
    config["model_type"] = type.substr(0, type.size() - kText.size());
  // mlx-lm expects this name; newer exporters write the other.
  if (config.contains("num_local_experts") && !config.contains("num_experts"))
    config["num_experts"] = config["num_local_experts"];
  write_old_keys(wrapped ? *text : config);
  adopt_stop_ids(in, config);
  if (!quantization.is_null()) config["quantization"] = config["quantization_config"] = quantization;
  files::FileWriter file(out / "config.json");
  file.write(config.dump(4));
  file.commit();
}

void copy_text_files(const fs::path& in, const fs::path& out) {
  std::error_code error;
  for (fs::directory_iterator entry(in, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!is_text_file(name) || !entry->is_regular_file()) continue;
    const files::MappedFile source(entry->path());
    files::FileWriter target(out / name);
    target.write(source.bytes());
    target.commit();
  }
  if (error) fail(ErrorKind::input, "cannot list the folder '{}': {}", in.string(), error.message());
}

}  // namespace sluice::convert
