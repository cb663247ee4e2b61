#include "server/responses/create.h"

#include <algorithm>

#include "server/api/chat_prompt.h"
#include "server/api/generation_fields.h"
#include "server/openai/request_fields.h"
#include "server/openai/structure.h"
#include "server/responses/input.h"
#include "server/responses/response_reply.h"

namespace sluice::server::responses {

namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 31;

// Tools that OpenAI runs on its own machines: they are ignored, and the response does not list them.
bool is_hosted(const Json& tool) {
  constexpr const char* kHosted[] = {"web_search",       "web_search_preview", "file_search",
                                     "code_interpreter", "image_generation",   "tool_search"};
  const Json type = tool.value("type", Json());
  return std::any_of(std::begin(kHosted), std::end(kHosted), [&](const char* one) { return type == one; });
}

Json as_chat_tool(Json tool, const Json& name_space, const std::string& param) {
  if (!tool.is_object() || tool.value("type", Json()) != "function" ||
      !tool.value("name", Json()).is_string())
    throw bad_request("Invalid '" + param + "': a function with a name is expected, or a namespace of some.",
                      param, "unsupported_value");
  tool.erase("type");
  tool["name"] = name_in(name_space, tool["name"]);
  return {{"type", "function"}, {"function", tool}};
}

void read_tools(const Json& tools, ResponseSettings& settings, Json& out) {
  settings.echo["tools"] = Json::array();
  for (std::size_t i = 0; i < tools.size(); ++i) {
    const Json& tool = tools[i];
    if (tool.is_object() && is_hosted(tool)) continue;
    settings.echo["tools"].push_back(tool);
    const std::string param = "tools[" + std::to_string(i) + "]";
    const bool many = tool.is_object() && tool.value("type", Json()) == "namespace" &&
                      tool.value("name", Json()).is_string() && tool.value("tools", Json()).is_array();
    if (!many) {
      out["tools"].push_back(as_chat_tool(tool, {}, param));
      continue;
    }
    for (const Json& member : tool["tools"]) {
      out["tools"].push_back(as_chat_tool(member, tool["name"], param));
      settings.members[out["tools"].back()["function"]["name"]] = {tool["name"], member["name"]};
    }
  }
}

// Translates the fields to those of chat completions, which have the same meaning.
Json as_chat_structure(api::Fields& fields, ResponseSettings& settings) {
  Json& echo = settings.echo;
  Json out = Json::object();
  if (const Json* text = fields.object("text")) {
    echo["text"] = *text;
    const Json format = text->value("format", Json());
    if (format.is_object()) {
      out["response_format"] = format;
      if (format.value("type", Json()) == "json_schema") out["response_format"]["json_schema"] = format;
    }
  }
  if (const Json* tools = fields.array("tools")) read_tools(*tools, settings, out);
  if (const Json* choice = fields.find("tool_choice")) out["tool_choice"] = echo["tool_choice"] = *choice;
  if (const auto parallel = fields.flag("parallel_tool_calls"))
    out["parallel_tool_calls"] = echo["parallel_tool_calls"] = *parallel;
  return out;
}

std::string read_effort(api::Fields& fields, Json& echo) {
  const Json* reasoning = fields.object("reasoning");
  if (reasoning == nullptr) return {};
  echo["reasoning"] = *reasoning;
  api::Fields inner(*reasoning);
  return inner.text("effort").value_or("");
}

void read_logprobs(api::Fields& fields, Request& request, ResponseSettings& settings) {
  const auto top = fields.integer("top_logprobs", 0, openai::kMostAlternatives);
  if (const Json* include = fields.array("include"))
    settings.logprobs =
        std::find(include->begin(), include->end(), "message.output_text.logprobs") != include->end();
  settings.logprobs = settings.logprobs || top.value_or(0) > 0;
  if (!settings.logprobs) return;
  request.options.sampling.logprobs = top.value_or(0);
  request.options.logprobs = request.options.sampling.logprobs;
}

void refuse_unsupported(api::Fields& fields) {
  for (const char* name : {"conversation", "prompt", "moderation"})
    if (fields.has(name))
      throw bad_request(std::string("'") + name + "' is not supported by this server.", name,
                        "unsupported_parameter");
  if (const Json* management = fields.array("context_management");
      management != nullptr && !management->empty())
    throw bad_request("'context_management' is not supported by this server; 'truncation' is.",
                      "context_management", "unsupported_parameter");
  fields.ignore({"user", "service_tier", "safety_identifier", "prompt_cache_retention",
                 "prompt_cache_options", "max_tool_calls", "stream_options", "verbosity", "timings_per_token",
                 "return_progress", "client_metadata", "access_programs"});
}

// The fields of the request that the response repeats.
Json defaults() {
  return {{"instructions", nullptr},
          {"max_output_tokens", nullptr},
          {"metadata", Json::object()},
          {"parallel_tool_calls", true},
          {"previous_response_id", nullptr},
          {"reasoning", {{"effort", nullptr}, {"summary", nullptr}}},
          {"temperature", 1.0},
          {"text", {{"format", {{"type", "text"}}}}},
          {"tool_choice", "auto"},
          {"tools", Json::array()},
          {"top_p", 1.0},
          {"truncation", "disabled"}};
}

// Where the conversation may begin: after its system messages, and at each later question.
std::vector<std::size_t> beginnings(const Json& messages) {
  std::size_t first = 0;
  while (first < messages.size() && messages[first].at("role") == "system") ++first;
  std::vector<std::size_t> all{first};
  for (std::size_t i = first + 1; i < messages.size(); ++i)
    if (messages[i].at("role") == "user") all.push_back(i);
  return all;
}

Json without(const Json& messages, std::size_t begin, std::size_t end) {
  Json left = messages;
  left.erase(left.begin() + static_cast<std::ptrdiff_t>(begin),
             left.begin() + static_cast<std::ptrdiff_t>(end));
  return left;
}

// The longest end of the conversation that fits and leaves room for the requested answer; always includes its
// last question.
api::ChatPrompt render_what_fits(const ServedModel& model, const Json& messages,
                                 const api::ChatSettings& chat, std::optional<std::int64_t> most) {
  const std::int64_t room = std::min(most.value_or(0), model.context / 2);
  const std::int64_t limit = std::min(api::most_prompt_tokens(model), model.context - room);
  api::ChatPrompt prompt = api::render_chat(model, messages, chat);
  if (std::ssize(prompt.ids) <= limit) return prompt;
  const std::vector<std::size_t> starts = beginnings(messages);
  const auto render_from = [&](std::size_t start) {
    return api::render_chat(model, without(messages, starts[0], starts[start]), chat);
  };
  std::size_t least = std::min<std::size_t>(1, starts.size() - 1), most_left_out = starts.size() - 1;
  while (least < most_left_out) {
    const std::size_t middle = (least + most_left_out) / 2;
    if (std::ssize(render_from(middle).ids) <= limit)
      most_left_out = middle;
    else
      least = middle + 1;
  }
  return render_from(least);
}

}  // namespace

api::Work create(const Json& body, const ServedModel& model, Store& store, const std::string& client) {
  api::Fields fields(body);
  ResponseSettings settings{.client = client, .store = store};
  settings.echo = defaults();
  if (const auto name = fields.text("model")) model.check_name(*name);
  settings.input = input_items(fields.need("input"));
  settings.messages = Json::array();
  if (const auto previous = fields.text("previous_response_id")) {
    settings.messages = store.get(client, *previous).messages;
    settings.echo["previous_response_id"] = *previous;
  }
  for (Json& message : api::template_messages(messages_of(settings.input)))
    settings.messages.push_back(std::move(message));
  settings.keep = fields.flag("store").value_or(true);
  const bool stream = fields.flag("stream").value_or(false);
  settings.background = fields.flag("background").value_or(false);
  if (settings.background && !settings.keep)
    throw bad_request("A background response must be stored.", "background", "invalid_value");
  if (settings.background && stream) settings.recording = store.record();
  api::Generation generation = api::read_generation(fields, model);
  read_logprobs(fields, generation.request, settings);
  const auto most = fields.integer("max_output_tokens", 1, kMostTokens);
  if (most) settings.echo["max_output_tokens"] = *most;
  if (const Json* metadata = fields.object("metadata")) settings.echo["metadata"] = *metadata;
  settings.echo["temperature"] = generation.request.options.sampling.temperature;
  settings.echo["top_p"] = generation.request.options.sampling.top_p;
  const Json structure = as_chat_structure(fields, settings);
  api::Fields structure_fields(structure);
  AnswerRequest answer = openai::read_structure(structure_fields);
  openai::read_extras(fields, answer, "text.format");
  answer.max_thinking_tokens = fields.integer("max_thinking_tokens", 0, kMostTokens);
  api::ChatSettings chat;
  chat.variables =
      api::template_variables(fields.object("chat_template_kwargs"), read_effort(fields, settings.echo));
  if (!answer.tools.empty() && answer.choice != ToolChoice::none)
    chat.variables["tools"] = structure["tools"];
  const std::string truncation = fields.text("truncation").value_or("disabled");
  if (truncation != "auto" && truncation != "disabled")
    throw bad_request("Invalid 'truncation': expected auto or disabled.", "truncation", "invalid_value");
  settings.echo["truncation"] = truncation;
  Json told = settings.messages;
  if (const auto instructions = fields.text("instructions")) {
    settings.echo["instructions"] = *instructions;
    told.insert(told.begin(), Json{{"role", "system"}, {"content", *instructions}});
  }
  refuse_unsupported(fields);
  fields.refuse_others();

  api::ChatPrompt prompt =
      truncation == "auto" ? render_what_fits(model, told, chat, most) : api::render_chat(model, told, chat);
  api::set_prompt(generation.request, std::move(prompt.ids), most, model, "input");
  answer.prompt = prompt.tail;
  answer.continues = prompt.continues;
  std::vector<Request> requests = generation.choices(1, answer, model, settings.plan);
  api::Work work{std::move(requests), stream, nullptr};
  work.background = settings.background;
  work.recording = settings.recording;
  work.reply = make_response_reply(std::move(settings), model);
  return work;
}

Json count_input(const Json& body, const ServedModel& model, Store& store, const std::string& client) {
  const api::Work work = create(body, model.unlimited(), store, client);
  return {{"object", "response.input_tokens"}, {"input_tokens", work.requests[0].prompt.size()}};
}

}  // namespace sluice::server::responses
