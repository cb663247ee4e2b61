// Renders a conversation into the text format of a model, with its checkpoint's template.
#pragma once

#include <ctime>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "jinja/budget.h"

namespace sluice::text {

struct ChatOptions {
  bool add_generation_prompt = true;
  // The local time for templates that print the date; without it, strftime_now is undefined.
  std::optional<std::tm> now;
  jinja::Limits limits;
};

// A compiled template: the subset of jinja2 that chat templates use, rendered exactly as Hugging Face's
// environment does. Immutable, so threads may share it. All errors are of kind input; a template that calls
// raise_exception fails with its own message.
class ChatTemplate {
 public:
  explicit ChatTemplate(std::string_view source);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // `messages` is an array of objects, `tools` an array of JSON schemas or null. The object `extra` holds
  // further variables (bos_token, eos_token, enable_thinking, ...).
  std::string render(const nlohmann::ordered_json& messages, const nlohmann::ordered_json& tools,
                     const nlohmann::ordered_json& extra, const ChatOptions& options = {}) const;

  // Renders with exactly these variables.
  std::string render(const nlohmann::ordered_json& variables, const ChatOptions& options = {}) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

// The chat templates of a checkpoint: one for everything, and possibly another for conversations with tools.
class ChatTemplates {
 public:
  // `config` is tokenizer_config.json; `jinja` is chat_template.jinja, which takes precedence.
  ChatTemplates(const nlohmann::ordered_json& config, std::optional<std::string_view> jinja = std::nullopt);

  std::string render(const nlohmann::ordered_json& messages, const nlohmann::ordered_json& tools,
                     const nlohmann::ordered_json& extra, const ChatOptions& options = {}) const;

 private:
  std::optional<ChatTemplate> default_, tool_use_;
  std::shared_ptr<const nlohmann::ordered_json> special_tokens_;
};

}  // namespace sluice::text
