// Requests of the protocols become requests of the scheduler, or errors that name the problem.
#include <gtest/gtest.h>

#include "server/anthropic/conversation.h"
#include "server/anthropic/messages.h"
#include "server/api/chat_prompt.h"
#include "server/openai/chat.h"
#include "server/openai/completions.h"
#include "server/responses/create.h"
#include "unit/server/bundled.h"

namespace sluice::server {
namespace {

Json chat_body(const char* fields = "{}") {
  Json body{{"messages", Json::array({{{"role", "user"}, {"content", "Hello"}}})}};
  body.update(Json::parse(fields));
  return body;
}

template <class F>
ApiError error_of(F&& call) {
  try {
    call();
  } catch (const ApiError& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {0, "", ""};
}

TEST(ServerJson, RefusesWhatIsNoObject) {
  for (const char* text : {"", "{", "[]", "3", "{\"a\": \"\xff\"}", "{\"a\": 1} x", "nul", "{\"a\": 1e999}"})
    EXPECT_EQ(error_of([&] { parse_body(text); }).status, 400) << text;
  EXPECT_EQ(parse_body(R"({"a": "]]]{{{\"["})")["a"], "]]]{{{\"[");
}

TEST(ServerJson, RefusesDeepNesting) {
  const auto nested = [](int depth) {
    return "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_NO_THROW(parse_body(nested(99)));
  EXPECT_EQ(error_of([&] { parse_body(nested(100)); }).status, 400);
  EXPECT_EQ(error_of([&] { parse_body(std::string(1'000'000, '[')); }).status, 400);
}

TEST(ChatRequest, RendersByTheModelsTemplate) {
  const api::Work work = openai::chat_completion(chat_body(), bundled());
  ASSERT_EQ(work.requests.size(), 1u);
  const std::string expected = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n";
  EXPECT_EQ(work.requests[0].prompt, bundled().engine->encode(expected));
  EXPECT_FALSE(work.stream);
  // Settings that are not given are those of the model's makers and the context.
  EXPECT_EQ(work.requests[0].options.sampling.top_k, 40);
  EXPECT_EQ(work.requests[0].options.max_tokens,
            bundled().context - static_cast<std::int64_t>(work.requests[0].prompt.size()));
}

TEST(ChatRequest, ReadsEveryParameter) {
  const api::Work work = openai::chat_completion(
      chat_body(
          R"({"temperature": 0.5, "top_p": 0.25, "top_k": 7, "min_p": 0.125, "seed": -3, "n": 3, "stop": ["a", "b"],
                    "max_tokens": 5, "presence_penalty": 1, "frequency_penalty": -1, "repetition_penalty": 1.5,
                    "logit_bias": {"17": -100}, "logprobs": true, "top_logprobs": 4, "stream": true, "ignore_eos": true,
                    "min_tokens": 2, "cache_salt": "s", "user": "u", "metadata": {}, "store": false, "stream_options": null})"),
      bundled());
  ASSERT_EQ(work.requests.size(), 3u);
  const GenerateOptions& options = work.requests[2].options;
  EXPECT_EQ(options.sampling.temperature, 0.5);
  EXPECT_EQ(options.sampling.top_p, 0.25);
  EXPECT_EQ(options.sampling.top_k, 7);
  EXPECT_EQ(options.sampling.min_p, 0.125);
  EXPECT_EQ(options.sampling.seed, static_cast<std::uint64_t>(-1));  // the third choice's
  EXPECT_EQ(options.sampling.presence_penalty, 1);
  EXPECT_EQ(options.sampling.frequency_penalty, -1);
  EXPECT_EQ(options.sampling.repetition_penalty, 1.5);
  EXPECT_EQ(options.sampling.logit_bias, (std::vector<std::pair<std::int32_t, double>>{{17, -100}}));
  EXPECT_EQ(options.logprobs, 4);
  EXPECT_EQ(options.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(options.max_tokens, 5);
  EXPECT_EQ(options.min_tokens, 2);
  EXPECT_TRUE(options.ignore_stop_ids);
  EXPECT_EQ(work.requests[2].cache_salt, "s");
  EXPECT_TRUE(work.stream);
}

TEST(ChatRequest, EachChoiceHasAGuideOfItsOwn) {
  const api::Work work = openai::chat_completion(
      chat_body(R"({"n": 2, "response_format": {"type": "json_object"}})"), bundled());
  ASSERT_TRUE(work.requests[0].options.guide && work.requests[1].options.guide);
  EXPECT_NE(work.requests[0].options.guide, work.requests[1].options.guide);
}

TEST(ChatRequest, NamesWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"temperature": "x"})", "temperature"},
      {R"({"temperature": 2.1})", "temperature"},
      {R"({"top_p": -1})", "top_p"},
      {R"({"n": 17})", "n"},
      {R"({"seed": 1.5})", "seed"},
      {R"({"max_tokens": 99999999999999999999})", "max_tokens"},
      {R"({"stop": [1]})", "stop"},
      {R"({"logit_bias": {"4096": 1}})", "logit_bias"},
      {R"({"logit_bias": {"1": 101}})", "logit_bias"},
      {R"({"top_logprobs": 21, "logprobs": true})", "top_logprobs"},
      {R"({"stream_options": {"include_usage": true}})", "stream_options"},
      {R"({"unheard_of": 1})", "unheard_of"},
      {R"({"response_format": {"type": "xml"}})", "response_format.type"},
      {R"({"tool_choice": "sometimes"})", "tool_choice"},
      {R"({"modalities": ["audio"]})", "modalities"},
      {R"({"messages": "x"})", "messages"},
      {R"({"messages": [3]})", "messages[0]"},
      {R"({"messages": [{"role": "user"}]})", "messages[0].content"},
      {R"({"messages": [{"role": "assistant", "tool_calls": [{}]}]})", "messages[0].tool_calls"},
  };
  for (const auto& [fields, param] : cases) {
    const ApiError error = error_of([&] { openai::chat_completion(chat_body(fields), bundled()); });
    EXPECT_EQ(error.status, 400) << fields;
    EXPECT_EQ(error.param, param) << fields << ": " << error.message;
  }
}

TEST(ChatRequest, TooLongForTheContext) {
  Json body = chat_body();
  std::string words;
  for (int i = 0; i < 3000; ++i) words += " word";
  body["messages"][0]["content"] = words;
  EXPECT_EQ(error_of([&] { openai::chat_completion(body, bundled()); }).code, "context_length_exceeded");
}

TEST(ChatRequest, OtherNamesOnlyWhereNamesAreStrict) {
  ServedModel model = bundled();
  const Json body = chat_body(R"({"model": "gpt-4"})");
  EXPECT_NO_THROW(openai::chat_completion(body, model));
  model.strict = true;
  EXPECT_EQ(error_of([&] { openai::chat_completion(body, model); }).status, 404);
  model.aliases = {"gpt-4"};
  EXPECT_NO_THROW(openai::chat_completion(body, model));
}

TEST(ChatRequest, MessagesInTheTemplatesForm) {
  const Json messages = Json::parse(R"([
      {"role": "developer", "content": [{"type": "text", "text": "Be "}, {"type": "text", "text": "kind."}]},
      {"role": "assistant", "content": null, "reasoning_content": "hm",
       "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}]},
      {"role": "tool", "tool_call_id": "1", "content": "done"}])");
  EXPECT_EQ(api::template_messages(messages), Json::parse(R"([
      {"role": "system", "content": "Be kind."},
      {"role": "assistant", "content": "", "reasoning_content": "hm",
       "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}]},
      {"role": "tool", "content": "done", "tool_call_id": "1"}])"));
}

TEST(ChatRequest, ArgumentsThatAreNoJsonStayText) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  for (const std::string& arguments : {std::string("not json"), std::string("[1]"), deep}) {
    const Json call{
        {"id", "1"}, {"type", "function"}, {"function", {{"name", "f"}, {"arguments", arguments}}}};
    const Json messages = Json::array({{{"role", "assistant"}, {"tool_calls", Json::array({call})}}});
    EXPECT_EQ(api::template_messages(messages)[0]["tool_calls"][0]["function"]["arguments"], arguments);
  }
}

TEST(ChatRequest, AnAnswerThatBeganIsContinued) {
  Json body = chat_body();
  body["messages"].push_back({{"role", "assistant"}, {"content", "Once"}});
  const api::Work work = openai::chat_completion(body, bundled());
  EXPECT_EQ(work.requests[0].prompt,
            bundled().engine->encode("<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\nOnce"));
}

TEST(CompletionRequest, ReadsPromptsOfAllKinds) {
  const auto prompts = [](const char* json) {
    Json body = Json::parse(json);
    std::vector<std::vector<std::int32_t>> out;
    for (Request& request : openai::completion(body, bundled()).requests)
      out.push_back(std::move(request.prompt));
    return out;
  };
  using Prompts = std::vector<std::vector<std::int32_t>>;
  const std::vector<std::int32_t> cat = bundled().engine->encode("The cat", true);
  EXPECT_EQ(prompts(R"({"prompt": "The cat"})"), Prompts{cat});
  EXPECT_EQ(prompts(R"({"prompt": ["The cat", "The cat"], "n": 2})"), (Prompts{cat, cat, cat, cat}));
  EXPECT_EQ(prompts(R"({"prompt": "The cat", "best_of": 2})"), (Prompts{cat, cat}));
  EXPECT_EQ(prompts(R"({"prompt": [1, 2]})"), (Prompts{{1, 2}}));
  EXPECT_EQ(prompts(R"({"prompt": [[1], [2, 3]]})"), (Prompts{{1}, {2, 3}}));
  for (const char* json : {R"({})", R"({"prompt": 5})", R"({"prompt": []})", R"({"prompt": [4096]})",
                           R"({"prompt": [[1], "x", {}]})", R"({"prompt": "x", "suffix": "y"})",
                           R"({"prompt": "x", "n": 3, "best_of": 2})", R"({"prompt": ""})"})
    EXPECT_EQ(error_of([&] { prompts(json); }).status, 400) << json;
}

TEST(MessageRequest, MessagesInTheTemplatesForm) {
  const Json system = Json::parse(R"([{"type": "text", "text": "x-anthropic-billing-header: 77"},
                                      {"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}])");
  const Json messages = Json::parse(R"([
      {"role": "user", "content": "Look."},
      {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "Yes"},
                                        {"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "moon"}]},
                                   {"type": "text", "text": "So?"}]}])");
  EXPECT_EQ(anthropic::template_messages(system, messages), Json::parse(R"([
      {"role": "system", "content": "Be kind."},
      {"role": "user", "content": "Look."},
      {"role": "assistant", "content": "Yes",
       "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}],
       "reasoning_content": "hm"},
      {"role": "tool", "content": "moon", "tool_call_id": "1"},
      {"role": "user", "content": "So?"}])"));
}

TEST(MessageRequest, DocumentsStandBetweenTags) {
  const Json messages = Json::parse(R"([
      {"role": "user", "content": [{"type": "document", "title": "Sky", "source": {"type": "text", "data": "It is blue."}},
                                   {"type": "text", "text": "What is?"}]},
      {"role": "system", "content": [{"type": "text", "text": "Be short."}]},
      {"role": "user", "content": [{"type": "text", "text": ""}]}])");
  EXPECT_EQ(anthropic::template_messages(Json(), messages), Json::parse(R"([
      {"role": "user", "content": "<document>\n<title>Sky</title>\nIt is blue.\n</document>\nWhat is?"},
      {"role": "system", "content": "Be short."},
      {"role": "user", "content": ""}])"));
}

TEST(MessageRequest, NamesWhatIsWrong) {
  for (
      const char* json :
      {R"({"messages": [{"role": "user", "content": "x"}]})", R"({"max_tokens": 5, "messages": []})",
       R"({"max_tokens": -1, "messages": [{"role": "user", "content": "x"}]})",
       R"({"max_tokens": 5, "messages": [{"role": "king", "content": "x"}]})",
       R"({"max_tokens": 5, "messages": [{"role": "user", "content": []}]})",
       R"({"max_tokens": 5, "messages": [{"role": "user", "content": [{"type": "image"}]}]})",
       R"({"max_tokens": 5, "messages": [{"role": "user", "content": "x"}], "tools": [{"type": "bash_20250124", "name": "b"}]})",
       R"({"max_tokens": 5, "messages": [{"role": "user", "content": "x"}], "tool_choice": {"type": "any"}})",
       R"({"max_tokens": 5, "messages": [{"role": "user", "content": "x"}], "thinking": {"type": "deep"}})"})
    EXPECT_EQ(error_of([&] { anthropic::create_message(Json::parse(json), bundled()); }).status, 400) << json;
}

TEST(ResponseRequest, ContinuesAnEarlierOne) {
  responses::Store store(1 << 20);
  store.put("me", "resp_1",
            {Json::object(), Json::array(), Json::parse(R"([{"role": "user", "content": "A"}])")});
  const Json body = Json::parse(R"({"input": "B", "previous_response_id": "resp_1", "instructions": "C"})");
  const api::Work work = responses::create(body, bundled(), store, "me");
  EXPECT_EQ(work.requests[0].prompt,
            bundled().engine->encode(
                "<|im_start|>system\nC<|im_end|>\n<|im_start|>user\nA<|im_end|>\n<|im_start|>user\n"
                "B<|im_end|>\n<|im_start|>assistant\n"));
  EXPECT_EQ(error_of([&] { responses::create(body, bundled(), store, "you"); }).status, 404);
}

// A request as sent by an agent that was written for OpenAI's service.
TEST(ResponseRequest, LeavesOutToolsThatTheServiceRuns) {
  responses::Store store(1 << 20);
  const char* kAsked = R"({
    "model": "gpt-5-codex", "instructions": "You are an agent.", "store": false, "stream": true,
    "input": [{"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
              {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
              {"type": "function_call", "namespace": "crm", "name": "find", "call_id": "1", "arguments": "{}"},
              {"type": "function_call_output", "call_id": "1", "output": [{"type": "input_text", "text": "none"}]}],
    "tools": [{"type": "function", "name": "run", "strict": false, "parameters": {"type": "object"}},
              {"type": "web_search", "external_web_access": false},
              {"type": "namespace", "name": "crm", "description": "Customers",
               "tools": [{"type": "function", "name": "find", "parameters": {"type": "object"}}]}],
    "tool_choice": "auto", "parallel_tool_calls": true, "reasoning": {"effort": "medium", "summary": "auto"},
    "include": ["reasoning.encrypted_content"], "prompt_cache_key": "1", "text": {"verbosity": "low"},
    "client_metadata": {"installation": "1"}})";
  const api::Work work = responses::create(Json::parse(kAsked), bundled(), store, "me");
  const Json tools = work.reply->body()["tools"];
  ASSERT_EQ(tools.size(), 2u);
  EXPECT_EQ(tools[0]["name"], "run");
  EXPECT_EQ(tools[1]["name"], "crm");
  for (const char* refused : {R"([{"type": "custom", "name": "patch"}])", R"([{"type": "local_shell"}])",
                              R"([3])", R"([{"type": "function"}])",
                              R"([{"type": "namespace", "name": "a", "tools": [{"type": "custom"}]}])"}) {
    Json body = Json::parse(kAsked);
    body["tools"] = Json::parse(refused);
    EXPECT_EQ(error_of([&] { responses::create(body, bundled(), store, "me"); }).param, "tools[0]")
        << refused;
  }
  Json forced = Json::parse(kAsked);
  forced["tool_choice"] = {{"type", "web_search"}};
  EXPECT_EQ(error_of([&] { responses::create(forced, bundled(), store, "me"); }).param, "tool_choice");
}

TEST(ResponseStore, KeepsToItsBytes) {
  responses::Store store(20'000);
  const std::string text(500, 'x');
  for (int i = 0; i < 20; ++i) {
    store.put("me", std::to_string(i), {Json{{"text", text}}, Json::array(), Json::array()});
    store.get("me", "0");  // in use
  }
  EXPECT_NO_THROW(store.get("me", "0"));
  EXPECT_NO_THROW(store.get("me", "19"));
  EXPECT_EQ(error_of([&] { store.get("me", "1"); }).status, 404);
  store.remove("me", "0");
  EXPECT_EQ(error_of([&] { store.get("me", "0"); }).status, 404);
}

}  // namespace
}  // namespace sluice::server
