#include "server/anthropic/messages.h"

#include <fmt/core.h>

#include "server/anthropic/cache_marks.h"
#include "server/anthropic/conversation.h"
#include "server/anthropic/error.h"
#include "server/anthropic/message_reply.h"
#include "server/api/chat_prompt.h"
#include "server/api/generation_fields.h"
#include "server/openai/structure.h"

namespace sluice::server::anthropic {

namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 31;
constexpr std::size_t kMostStops = 16;

// Tools in the form that templates expect.
Json functions(const Json& tools) {
  Json out = Json::array();
  for (std::size_t i = 0; i < tools.size(); ++i) {
    const Json& tool = tools[i];
    const std::string where = "tools." + std::to_string(i);
    if (!tool.is_object() || !tool.contains("name"))
      throw bad_request(where + ".name: Field required", where);
    if (!tool.contains("input_schema"))
      throw bad_request(where + ": only tools with an input_schema are supported", where);
    Json function{{"name", tool["name"]}};
    if (tool.contains("description")) function["description"] = tool["description"];
    function["parameters"] = tool["input_schema"];
    if (tool.contains("strict")) function["strict"] = tool["strict"];
    out.push_back({{"type", "function"}, {"function", function}});
  }
  return out;
}

void read_tool_choice(api::Fields& fields, AnswerRequest& answer) {
  const Json* choice = fields.object("tool_choice");
  if (choice == nullptr) return;
  const Json type = choice->value("type", Json());
  answer.parallel_calls = choice->value("disable_parallel_tool_use", Json(false)) != true;
  if (type == "none") {
    answer.choice = ToolChoice::none;
  } else if (type == "any") {
    answer.choice = ToolChoice::required;
  } else if (type == "tool" && choice->value("name", Json()).is_string()) {
    answer.choice = ToolChoice::named;
    answer.tool = (*choice)["name"].get<std::string>();
  } else if (type != "auto") {
    throw bad_request("tool_choice.type: Input should be 'auto', 'any', 'tool' or 'none'", "tool_choice");
  }
  const bool calls = answer.choice == ToolChoice::required || answer.choice == ToolChoice::named;
  if (calls && answer.tools.empty()) throw bad_request("tool_choice: there are no tools", "tool_choice");
}

// Reads output_config, which requests a schema.
void read_output_config(api::Fields& fields, AnswerRequest& answer) {
  const Json* config = fields.object("output_config");
  if (config == nullptr || !config->contains("format") || (*config)["format"].is_null()) return;
  const Json& format = (*config)["format"];
  const bool schema =
      format.is_object() && format.value("type", Json()) == "json_schema" && format.contains("schema");
  if (!schema)
    throw bad_request("output_config.format: Input should be a json_schema", "output_config.format");
  answer.content.emplace();
  answer.content->kind = GrammarSource::Kind::json_schema;
  answer.content->text = dump(format["schema"]);
}

std::string read_effort(api::Fields& fields) {
  const Json* config = fields.object("output_config");
  return config == nullptr ? "" : api::Fields(*config).text("effort").value_or("");
}

void read_thinking(api::Fields& fields, Json& variables, AnswerRequest& answer) {
  const Json* thinking = fields.object("thinking");
  if (thinking == nullptr) return;
  const Json type = thinking->value("type", Json());
  if (type != "enabled" && type != "disabled" && type != "adaptive")
    throw bad_request("thinking.type: Input should be 'enabled', 'adaptive' or 'disabled'", "thinking.type");
  if (!variables.contains("enable_thinking")) variables["enable_thinking"] = type != "disabled";
  api::Fields inner(*thinking);
  answer.max_thinking_tokens = inner.integer("budget_tokens", 0, kMostTokens);
}

api::ChatPrompt read_prompt(api::Fields& fields, const ServedModel& model, AnswerRequest& answer) {
  if (const auto name = fields.text("model")) model.check_name(*name);
  const Json* system = fields.find("system");
  const Json messages = template_messages(system == nullptr ? Json() : *system, fields.need("messages"));
  api::ChatSettings settings;
  settings.variables = api::template_variables(fields.object("chat_template_kwargs"), read_effort(fields));
  read_thinking(fields, settings.variables, answer);
  const Json tools = fields.has("tools") ? functions(*fields.array("tools")) : Json::array();
  if (!tools.empty()) answer.tools = dump(tools);
  read_tool_choice(fields, answer);
  read_output_config(fields, answer);
  openai::read_extras(fields, answer, "output_config.format");
  if (!tools.empty() && answer.choice != ToolChoice::none) settings.variables["tools"] = tools;
  return api::render_chat(model, messages, settings);
}

}  // namespace

api::Work create_message(const Json& body, const ServedModel& model) {
  api::Fields fields(body);
  if (fields.has("thread"))
    throw bad_request("thread: this server stores no conversations; send the complete one without it",
                      "thread", std::string(kThreadsUnsupported));
  fields.need("max_tokens");
  const auto most = fields.integer("max_tokens", 0, kMostTokens);  // 0: only cache the prompt
  const bool stream = fields.flag("stream").value_or(false);
  AnswerRequest answer;
  api::ChatPrompt prompt = read_prompt(fields, model, answer);
  api::Generation generation = api::read_generation(fields, model);
  const std::vector<std::string> stops = fields.texts("stop_sequences", kMostStops);
  for (const std::string& stop : stops)
    if (!stop.empty()) generation.request.options.stop.push_back(stop);
  fields.ignore({"metadata", "service_tier", "container", "context_management", "mcp_servers", "betas",
                 "inference_geo", "cache_control", "diagnostics", "speed", "user_profile_id"});
  fields.refuse_others();

  generation.request.cache_messages = cache_marks(body);
  // In the wording by which agents recognise that they must shorten their conversation.
  if (const auto limit = api::most_prompt_tokens(model); std::ssize(prompt.ids) > limit)
    throw context_exceeded(
        fmt::format("prompt is too long: {} tokens > {} maximum", prompt.ids.size(), limit), "messages");
  api::set_prompt(generation.request, std::move(prompt.ids), most, model, "messages");
  MessageReplySettings reply;
  reply.stops = generation.request.options.stop;
  reply.prompt_tokens = std::ssize(generation.request.prompt);
  reply.most_tokens = *most;
  answer.prompt = prompt.tail;
  answer.continues = prompt.continues;
  std::vector<Request> requests = generation.choices(1, answer, model, reply.plan);
  return {std::move(requests), stream, make_message_reply(reply, model)};
}

Json count_tokens(const Json& body, const ServedModel& model) {
  api::Fields fields(body);
  AnswerRequest ignored;
  const api::ChatPrompt prompt = read_prompt(fields, model, ignored);
  return {{"input_tokens", prompt.ids.size()}};
}

}  // namespace sluice::server::anthropic
