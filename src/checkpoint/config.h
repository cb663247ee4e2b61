// config.json: the description of a model.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace sluice::checkpoint {

// Typed access to one object of config.json that records which fields were read, so that a model can reject
// unknown ones. At the top level, the members of `text_config` (where a multimodal wrapper keeps the language
// model) take precedence over the file's own. Copies share one record; use them from one thread.
class Config {
 public:
  explicit Config(const std::filesystem::path& folder);
  Config(Json root, std::string where);

  const std::string& where() const { return where_; }
  const Json& root() const;
  // From the file's top level, not its text_config: "qwen3_5_moe".
  std::string model_type() const;

  bool has(std::string_view key) const { return find(key) != nullptr; }

  template <class T>
  std::optional<T> optional(std::string_view key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    return json_as<T>(*value, fmt::format("{}: '{}'", where_, path(key)));
  }

  template <class T>
  T get(std::string_view key) const {
    std::optional<T> value = optional<T>(key);
    if (!value) fail(ErrorKind::checkpoint, "{}: the required key '{}' is missing", where_, path(key));
    return *std::move(value);
  }

  template <class T>
  T get_or(std::string_view key, T fallback) const {
    return optional<T>(key).value_or(std::move(fallback));
  }

  // The object at `key`; none if absent or null.
  std::optional<Config> section(std::string_view key) const;

  // Fields of the language model that were not read, as "key" or "section.key", sorted; without those that
  // describe the file, training or serving and never change a forward pass.
  std::vector<std::string> unread() const;
  // Throws if any is left besides those that the model knows to be harmless.
  void refuse_unread(std::initializer_list<std::string_view> harmless) const;

 private:
  struct State;

  Config(std::shared_ptr<State> state, std::string where, std::string prefix, const Json* object);
  const Json* find(std::string_view key) const;
  std::string path(std::string_view key) const { return prefix_ + std::string(key); }
  void collect_unread(const Json& object, const std::string& prefix, std::vector<std::string>& unread) const;

  std::shared_ptr<State> state_;
  std::string where_;
  std::string prefix_;              // "" or "section."
  const Json* object_ = nullptr;    // searched first
  const Json* fallback_ = nullptr;  // the file's top level, if object_ is its text_config
};

}  // namespace sluice::checkpoint
