#include "models/geometry.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

#include "models/family.h"

namespace sluice::models {

namespace {

// The key for the number of experts in the config's family.
std::string_view experts_key(const Json& config) {
  const auto type = config.at("model_type").get<std::string>();
  for (const Family* family : families())
    if (std::find(family->model_types.begin(), family->model_types.end(), type) != family->model_types.end())
      return family->conversion.experts_key;
  return "";
}

void apply(Json& config, std::string_view change) {
  const auto equals = change.find('=');
  const std::string_view key = change.substr(0, equals);
  const std::string_view text = equals == std::string_view::npos ? "" : change.substr(equals + 1);
  std::int64_t value = 0;
  const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || stop != text.data() + text.size() || value < 1)
    fail(ErrorKind::input, "geometry: '{}' must be KEY=NUMBER with a number of at least 1", change);
  Json& sizes = config.contains("text_config") ? config["text_config"] : config;
  if (key == "layers")
    sizes["num_hidden_layers"] = value;
  else if (key == "vocab")
    sizes["vocab_size"] = value;
  else if (const std::string experts(experts_key(config)); key == "experts" && sizes.contains(experts))
    sizes[experts] = value;
  else
    fail(ErrorKind::input, "geometry: '{}' cannot be changed; known are layers, experts and vocab", key);
}

}  // namespace

std::vector<std::string_view> geometry_names() {
  std::vector<std::string_view> names;
  for (const Family* family : families())
    for (const Geometry& geometry : family->geometries) names.push_back(geometry.name);
  return names;
}

namespace {

const Geometry& find(std::string_view name) {
  for (const Family* family : families())
    for (const Geometry& geometry : family->geometries)
      if (geometry.name == name) return geometry;
  fail(ErrorKind::input, "there is no geometry '{}'; known are {}", name, fmt::join(geometry_names(), ", "));
}

}  // namespace

Json geometry_config(std::string_view geometry) {
  const auto colon = geometry.find(':');
  std::string_view changes = colon == std::string_view::npos ? "" : geometry.substr(colon + 1);
  Json config = find(geometry.substr(0, colon)).config();
  while (!changes.empty()) {
    const auto comma = changes.find(',');
    apply(config, changes.substr(0, comma));
    changes = comma == std::string_view::npos ? "" : changes.substr(comma + 1);
  }
  return config;
}

}  // namespace sluice::models
