#include "text/chat_template.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "jinja/json.h"
#include "jinja/runtime/interpreter.h"
#include "jinja/syntax/lexer.h"
#include "jinja/syntax/parser.h"

namespace sluice::text {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kMaxSource = std::size_t{4} << 20;

// Special tokens are strings, or objects whose content is the string.
OrderedJson special_tokens(const OrderedJson& config) {
  OrderedJson tokens = OrderedJson::object();
  for (const auto& [key, value] : config.items()) {
    constexpr std::string_view kSuffix = "_token";
    if (key.size() <= kSuffix.size() ||
        key.compare(key.size() - kSuffix.size(), kSuffix.size(), kSuffix) != 0)
      continue;
    if (value.is_string()) tokens[key] = value;
    if (value.is_object() && value.contains("content") && value["content"].is_string())
      tokens[key] = value["content"];
  }
  return tokens;
}

std::string source_of(const OrderedJson& named) {
  if (!named.is_object() || !named.contains("template") || !named["template"].is_string())
    fail(ErrorKind::checkpoint, "each entry of chat_template needs a string named template");
  return named["template"].get<std::string>();
}

}  // namespace

struct ChatTemplate::Impl {
  jinja::syntax::Body body;
};

ChatTemplate::ChatTemplate(std::string_view source) {
  if (source.size() > kMaxSource)
    fail(ErrorKind::input, "a chat template has at most {} bytes, this one has {}", kMaxSource,
         source.size());
  try {
    impl_.reset(new Impl{jinja::syntax::parse(source)});
  } catch (const jinja::syntax::SyntaxFault& error) {
    fail(ErrorKind::input, "chat template, line {}: {}", error.line, error.what());
  }
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::string ChatTemplate::render(const OrderedJson& messages, const OrderedJson& tools,
                                 const OrderedJson& extra, const ChatOptions& options) const {
  if (!messages.is_array()) fail(ErrorKind::input, "messages must be an array, not {}", messages.type_name());
  if (!tools.is_array() && !tools.is_null())
    fail(ErrorKind::input, "tools must be an array or null, not {}", tools.type_name());
  if (!extra.is_object() && !extra.is_null())
    fail(ErrorKind::input, "template variables must be an object, not {}", extra.type_name());
  OrderedJson variables = extra.is_null() ? OrderedJson::object() : extra;
  variables["messages"] = messages;
  variables["tools"] = tools;
  if (!variables.contains("documents")) variables["documents"] = nullptr;
  variables["add_generation_prompt"] = options.add_generation_prompt;
  return render(variables, options);
}

std::string ChatTemplate::render(const OrderedJson& variables, const ChatOptions& options) const {
  if (!variables.is_object()) fail(ErrorKind::input, "template variables must be an object");
  jinja::Value values;
  try {
    values = jinja::from_json(variables);
  } catch (const jinja::Fault& error) {
    fail(ErrorKind::input, "chat template variables: {}", error.what());
  }
  jinja::runtime::Interpreter interpreter(options.limits, values.dict(),
                                          options.now ? &*options.now : nullptr);
  try {
    return interpreter.render(impl_->body);
  } catch (const jinja::Fault& error) {
    fail(ErrorKind::input, "chat template, line {}: {}", interpreter.line(), error.what());
  }
}

ChatTemplates::ChatTemplates(const OrderedJson& config, std::optional<std::string_view> jinja) {
  if (!config.is_object()) fail(ErrorKind::checkpoint, "tokenizer_config.json must hold an object");
  special_tokens_ = std::make_shared<const OrderedJson>(special_tokens(config));
  OrderedJson none;
  const OrderedJson& given = config.contains("chat_template") ? config["chat_template"] : none;
  if (jinja) {
    default_.emplace(*jinja);
  } else if (given.is_string()) {
    default_.emplace(given.get_ref<const std::string&>());
  } else if (given.is_array()) {
    for (const OrderedJson& named : given) {
      std::string name = named.is_object() ? named.value("name", "") : "";
      if (name == "default") default_.emplace(source_of(named));
      if (name == "tool_use") tool_use_.emplace(source_of(named));
    }
  }
  if (!default_) fail(ErrorKind::checkpoint, "the checkpoint has no default chat template");
}

std::string ChatTemplates::render(const OrderedJson& messages, const OrderedJson& tools,
                                  const OrderedJson& extra, const ChatOptions& options) const {
  OrderedJson variables = *special_tokens_;
  if (extra.is_object()) variables.update(extra);
  const ChatTemplate& chosen = tool_use_ && !tools.is_null() ? *tool_use_ : *default_;
  return chosen.render(messages, tools, variables, options);
}

}  // namespace sluice::text
