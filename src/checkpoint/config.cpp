#include "checkpoint/config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/quote.h"

namespace sluice::checkpoint {
namespace {

constexpr JsonLimits kLimits{.bytes = size_t{64} << 20, .depth = 64};

// Keys that exporters write and that have no effect on a forward pass. Quantisation and stop ids are read
// elsewhere.
constexpr std::string_view kHarmless[] = {
    "_name_or_path",       "architectures",
    "attention_dropout",   "auto_map",
    "bos_token_id",        "dtype",
    "eos_token_id",        "initializer_range",
    "model_type",          "output_router_logits",
    "pad_token_id",        "quantization",
    "quantization_config", "router_aux_loss_coef",
    "torch_dtype",         "transformers_version",
    "use_cache",
};

bool contains(auto&& range, std::string_view key) {
  return std::find(std::begin(range), std::end(range), key) != std::end(range);
}

}  // namespace

struct Config::State {
  Json root;
  std::set<std::string, std::less<>> read;  // paths of values read; "path." for sections
};

Config::Config(const std::filesystem::path& folder)
    : Config(read_json_file(folder / "config.json", kLimits), (folder / "config.json").string()) {}

Config::Config(Json root, std::string where)
    : state_(std::make_shared<State>(State{std::move(root), {}})),
      where_(std::move(where)),
      object_(&state_->root) {
  if (const Json* text = json_find(state_->root, "text_config", where_)) {
    if (!text->is_object()) fail(ErrorKind::checkpoint, "{}: 'text_config' is not an object", where_);
    fallback_ = std::exchange(object_, text);
  }
}

Config::Config(std::shared_ptr<State> state, std::string where, std::string prefix, const Json* object)
    : state_(std::move(state)), where_(std::move(where)), prefix_(std::move(prefix)), object_(object) {}

const Json& Config::root() const {
  return state_->root;
}

std::string Config::model_type() const {
  return json_get<std::string>(state_->root, "model_type", where_);
}

const Json* Config::find(std::string_view key) const {
  state_->read.insert(path(key));
  const Json* value = json_find(*object_, key, where_);
  if (value == nullptr && fallback_ != nullptr) value = json_find(*fallback_, key, where_);
  return value;
}

std::optional<Config> Config::section(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::string name = path(key);
  if (!value->is_object()) {
    fail(ErrorKind::checkpoint, "{}: '{}' is a {}, expected an object", where_, name, value->type_name());
  }
  state_->read.erase(name);
  state_->read.insert(name + ".");
  return Config(state_, where_, name + ".", value);
}

void Config::collect_unread(const Json& object, const std::string& prefix,
                            std::vector<std::string>& unread) const {
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix + key;
    if (value.is_null() || state_->read.contains(name) || (prefix.empty() && contains(kHarmless, key)))
      continue;
    if (value.is_object() && state_->read.contains(name + ".")) {
      collect_unread(value, name + ".", unread);
    } else {
      unread.push_back(name);
    }
  }
}

std::vector<std::string> Config::unread() const {
  std::vector<std::string> unread;
  collect_unread(*object_, prefix_, unread);
  return unread;
}

void Config::refuse_unread(std::initializer_list<std::string_view> harmless) const {
  std::string names;
  for (const std::string& name : unread()) {
    if (contains(harmless, name)) continue;
    names += (names.empty() ? "" : ", ") + quote(name);
    constexpr size_t kShown = 1000;
    if (names.size() > kShown) break;
  }
  if (!names.empty()) {
    fail(ErrorKind::unsupported, "{}: {} may change what the model computes and is not supported", where_,
         names);
  }
}

}  // namespace sluice::checkpoint
