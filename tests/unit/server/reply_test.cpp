// Answers in the format of each protocol: streams have the same contents as complete answers.
#include <gtest/gtest.h>

#include "server/anthropic/message_reply.h"
#include "server/openai/chat_reply.h"
#include "server/openai/completion_reply.h"
#include "server/responses/response_reply.h"
#include "unit/server/bundled.h"

namespace sluice::server {
namespace {

const AnswerFormat kThinking{ToolCallFormat::json_in_tags, "<think>", "</think>", false, false};
constexpr const char* kAnswer =
    "<think>Hm, hm.</think>Let me look.<tool_call>{\"name\": \"look\", \"arguments\": {\"at\": "
    "\"moon\"}}</tool_call>";

GeneratedToken token(std::string text, std::int32_t id = 5) {
  GeneratedToken token;
  token.id = id;
  token.text = std::move(text);
  return token;
}

// The data of all events; named events must have the name of their data's type.
std::vector<Json> data_of(const std::string& events) {
  std::vector<Json> out;
  std::size_t at = 0;
  while (at < events.size()) {
    const std::size_t end = events.find("\n\n", at);
    std::string event = events.substr(at, end - at);
    at = end + 2;
    std::string name;
    if (event.starts_with("event: ")) {
      name = event.substr(7, event.find('\n') - 7);
      event.erase(0, event.find('\n') + 1);
    }
    EXPECT_TRUE(event.starts_with("data: ")) << event;
    if (event == "data: [DONE]") continue;
    out.push_back(Json::parse(event.substr(6)));
    if (!name.empty()) {
      EXPECT_EQ(out.back()["type"], name);
    }
  }
  return out;
}

template <class F>
int error_status(F&& f) {
  try {
    f();
  } catch (const ApiError& error) {
    return error.status;
  }
  return 0;
}

// Passes kAnswer to the reply in pieces of that many bytes.
std::vector<Json> told(api::Reply& reply, std::size_t piece, FinishReason reason = FinishReason::stop,
                       const std::string& answer = kAnswer) {
  std::string events = reply.accepted();
  events += reply.begin(3);
  RequestResult result;
  for (std::size_t at = 0; at < answer.size(); at += piece) {
    const GeneratedToken one = token(answer.substr(at, piece));
    result.generated.ids.push_back(one.id);
    events += reply.tokens(0, std::span(&one, 1));
  }
  result.generated.text = answer;
  result.generated.reason = reason;
  result.prompt = {.tokens = 10, .cached = 3};
  events += reply.done(0, result) + reply.end();
  return data_of(events);
}

openai::ChatReplySettings thinking_chat() {
  openai::ChatReplySettings settings;
  settings.plan.format = kThinking;
  return settings;
}

TEST(ChatReply, StreamEqualsTheCompleteReply) {
  for (std::size_t piece = 1; piece < 30; ++piece) {
    const auto reply = openai::make_chat_reply(thinking_chat(), bundled(), 1);
    std::string content, thinking, arguments, name, reason;
    for (const Json& chunk : told(*reply, piece)) {
      const Json& choice = chunk["choices"][0];
      const Json& delta = choice["delta"];
      // Clients break on fields that only some chunks have.
      ASSERT_TRUE(delta.contains("reasoning_content") && delta.contains("content")) << delta;
      if (delta["content"].is_string()) content += delta["content"].get<std::string>();
      if (delta["reasoning_content"].is_string()) thinking += delta["reasoning_content"].get<std::string>();
      if (delta.contains("tool_calls")) {
        name += delta["tool_calls"][0]["function"]["name"].get<std::string>();
        arguments += delta["tool_calls"][0]["function"]["arguments"].get<std::string>();
      }
      if (choice["finish_reason"].is_string()) reason = choice["finish_reason"];
    }
    EXPECT_EQ(thinking, "Hm, hm.");
    EXPECT_EQ(content, "Let me look.");
    EXPECT_EQ(name, "look");
    EXPECT_EQ(Json::parse(arguments), Json::parse(R"({"at": "moon"})"));
    EXPECT_EQ(reason, "tool_calls");
    const Json message = reply->body()["choices"][0]["message"];
    EXPECT_EQ(message["content"], content);
    EXPECT_EQ(message["reasoning_content"], thinking);
    EXPECT_EQ(message["tool_calls"][0]["function"]["arguments"], arguments);
    const Json usage = reply->body()["usage"];
    EXPECT_EQ(usage["prompt_tokens"], 10);
    EXPECT_EQ(usage["prompt_tokens_details"]["cached_tokens"], 3);
    EXPECT_GT(usage["completion_tokens_details"]["reasoning_tokens"], 0);
  }
}

TEST(ChatReply, ModelsThatDoNotThinkHaveNoSuchField) {
  const auto reply = openai::make_chat_reply({}, bundled(), 1);
  for (const Json& chunk : told(*reply, 5))
    EXPECT_FALSE(chunk["choices"][0]["delta"].contains("reasoning_content"));
  EXPECT_EQ(reply->body()["choices"][0]["message"]["content"], kAnswer);
}

TEST(ChatReply, AnErrorEndsTheStream) {
  const auto reply = openai::make_chat_reply({}, bundled(), 1);
  const std::string events = reply->failed(unavailable("gone"));
  EXPECT_TRUE(events.ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(data_of(events)[0]["error"]["message"], "gone");
}

TEST(ChatReply, LogprobsOfTextThatIsHeldBack) {
  openai::ChatReplySettings settings = thinking_chat();
  settings.logprobs = true;
  const auto reply = openai::make_chat_reply(settings, bundled(), 1);
  std::size_t entries = 0;
  for (const Json& chunk : told(*reply, 4)) {
    const Json& logprobs = chunk["choices"][0]["logprobs"];
    if (!logprobs.is_null()) entries += logprobs["content"].size();
  }
  EXPECT_EQ(entries, reply->body()["choices"][0]["logprobs"]["content"].size());
  EXPECT_EQ(entries, (std::string_view(kAnswer).size() + 3) / 4);
}

// An incomplete call is not lost, and is reported in every protocol, streamed or not.
TEST(Replies, ReportACallThatCannotBeParsed) {
  const std::string cut = "<tool_call>{\"name\": \"look\", \"arg", answer = "So:" + cut;
  for (std::size_t piece = 1; piece < 30; piece += 4) {
    const auto chat = openai::make_chat_reply(thinking_chat(), bundled(), 1);
    const std::vector<Json> chunks = told(*chat, piece, FinishReason::length, answer);
    std::string content;
    for (const Json& chunk : chunks)
      if (const Json& part = chunk["choices"][0]["delta"]["content"]; part.is_string())
        content += part.get<std::string>();
    const Json choice = chat->body()["choices"][0];
    EXPECT_EQ(content, answer);
    EXPECT_EQ(choice["message"]["content"], answer);
    EXPECT_FALSE(choice["message"].contains("tool_calls"));
    EXPECT_NE(choice["note"].get<std::string>().find("cannot be parsed"), std::string::npos);
    EXPECT_EQ(chunks.back()["choices"][0]["note"], choice["note"]);

    anthropic::MessageReplySettings settings;
    settings.plan.format = kThinking;
    const auto message = anthropic::make_message_reply(settings, bundled());
    const std::vector<Json> events = told(*message, piece, FinishReason::length, answer);
    EXPECT_EQ(message->body()["content"][0]["text"], answer);
    EXPECT_EQ(message->body()["note"], choice["note"]);
    EXPECT_EQ(events[events.size() - 2]["delta"]["note"], choice["note"]);

    responses::Store store(1 << 20);
    responses::ResponseSettings asked{.client = "me", .store = store};
    asked.plan.format = kThinking;
    const auto response = responses::make_response_reply(std::move(asked), bundled());
    const std::vector<Json> told_events = told(*response, piece, FinishReason::length, answer);
    EXPECT_EQ(response->body()["output"][0]["content"][0]["text"], answer);
    EXPECT_EQ(response->body()["note"], choice["note"]);
    EXPECT_EQ(told_events.back()["response"]["note"], choice["note"]);
  }
  const auto chat = openai::make_chat_reply(thinking_chat(), bundled(), 1);
  told(*chat, 5);
  EXPECT_FALSE(chat->body()["choices"][0].contains("note"));
}

TEST(CompletionReply, SumsEachPromptOnce) {
  openai::CompletionReplySettings settings;
  settings.prompts = 2;
  settings.echoes = {"", "", "", ""};
  const auto reply = openai::make_completion_reply(settings, bundled());
  for (std::size_t i = 0; i < 4; ++i) {
    const GeneratedToken one = token("x");
    reply->tokens(i, std::span(&one, 1));
    RequestResult result;
    result.generated.ids = {5};
    result.prompt.tokens = i < 2 ? 10 : 20;
    reply->done(i, result);
  }
  EXPECT_EQ(reply->body()["usage"]["prompt_tokens"], 30);
  EXPECT_EQ(reply->body()["usage"]["completion_tokens"], 4);
}

TEST(MessageReply, BlocksOpenAndClose) {
  for (std::size_t piece = 1; piece < 30; piece += 3) {
    anthropic::MessageReplySettings settings;
    settings.plan.format = kThinking;
    settings.prompt_tokens = 10;
    const auto reply = anthropic::make_message_reply(settings, bundled());
    const std::vector<Json> events = told(*reply, piece);
    EXPECT_EQ(events.front()["type"], "message_start");
    EXPECT_EQ(events.front()["message"]["usage"]["input_tokens"], 7);
    EXPECT_EQ(events.front()["message"]["usage"]["cache_read_input_tokens"], 3);
    EXPECT_EQ(events.back()["type"], "message_stop");
    int open = -1, next = 0;
    std::vector<std::string> kinds;
    for (const Json& event : events) {
      if (event["type"] == "content_block_start") {
        EXPECT_EQ(open, -1);
        EXPECT_EQ(event["index"], next);
        open = next++;
        kinds.push_back(event["content_block"]["type"]);
      } else if (event["type"] == "content_block_delta") {
        EXPECT_EQ(event["index"], open);
      } else if (event["type"] == "content_block_stop") {
        EXPECT_EQ(event["index"], open);
        open = -1;
      }
    }
    EXPECT_EQ(kinds, (std::vector<std::string>{"thinking", "text", "tool_use"}));
    const Json body = reply->body();
    EXPECT_EQ(body["content"][0]["thinking"], "Hm, hm.");
    EXPECT_EQ(body["content"][1]["text"], "Let me look.");
    EXPECT_EQ(body["content"][2]["input"], Json::parse(R"({"at": "moon"})"));
    EXPECT_EQ(body["stop_reason"], "tool_use");
  }
}

TEST(ResponseReply, ItemsInOrderAndStored) {
  responses::Store store(1 << 20);
  responses::ResponseSettings settings{.client = "me", .store = store};
  settings.messages = Json::array();
  settings.plan.format = kThinking;
  const auto reply = responses::make_response_reply(std::move(settings), bundled());
  const std::vector<Json> events = told(*reply, 3);
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i]["sequence_number"], i);
  EXPECT_EQ(events.front()["type"], "response.created");
  EXPECT_EQ(events.back()["type"], "response.completed");
  const Json body = reply->body();
  ASSERT_EQ(body["output"].size(), 3u);
  EXPECT_EQ(body["output"][0]["type"], "reasoning");
  EXPECT_EQ(body["output"][1]["content"][0]["text"], "Let me look.");
  EXPECT_EQ(body["output"][2]["name"], "look");
  const responses::Stored stored = store.get("me", body["id"]);
  EXPECT_EQ(stored.response, body);
  EXPECT_EQ(stored.messages[0]["reasoning_content"], "Hm, hm.");
  EXPECT_EQ(stored.messages[0]["tool_calls"][0]["function"]["arguments"], Json::parse(R"({"at": "moon"})"));
}

TEST(ResponseReply, NamesTheNamespaceOfAFunction) {
  responses::Store store(1 << 20);
  responses::ResponseSettings settings{.client = "me", .store = store};
  settings.messages = Json::array();
  settings.members["look"] = {"eyes", "see"};
  settings.plan.format = kThinking;
  const auto reply = responses::make_response_reply(std::move(settings), bundled());
  told(*reply, 3);
  const Json body = reply->body();
  EXPECT_EQ(body["output"][2]["namespace"], "eyes");
  EXPECT_EQ(body["output"][2]["name"], "see");
  EXPECT_EQ(store.get("me", body["id"]).messages[0]["tool_calls"][0]["function"]["name"], "eyes__see");
}

TEST(ResponseReply, IsSeenWhileItIsGenerated) {
  responses::Store store(1 << 20);
  responses::ResponseSettings settings{.client = "me", .store = store, .background = true};
  const auto reply = responses::make_response_reply(std::move(settings), bundled());
  const std::string id = reply->body()["id"];
  int cancelled = 0;
  reply->started([&] { ++cancelled; });
  EXPECT_EQ(store.show("me", id).response["status"], "queued");
  EXPECT_EQ(error_status([&] { store.show("you", id); }), 404);
  EXPECT_EQ(error_status([&] { store.get("me", id); }), 404) << "there is nothing to continue yet";
  reply->begin(0);
  const GeneratedToken one = token("Once upon");
  reply->tokens(0, std::span(&one, 1));
  const Json response = store.show("me", id).response;
  EXPECT_EQ(response["status"], "in_progress");
  EXPECT_EQ(response["output"][0]["content"][0]["text"], "Once upon");
  EXPECT_TRUE(store.cancel("me", id));
  EXPECT_EQ(cancelled, 1);
  store.remove("me", id);
  EXPECT_EQ(cancelled, 2);
  reply->done(0, {});
  EXPECT_EQ(error_status([&] { store.show("me", id); }), 404) << "what was removed is not kept";
}

TEST(Recording, GivesWhatComesAfterANumber) {
  const auto room = std::make_shared<api::RecordingRoom>(30);
  api::Recording recording(room);
  int told = 0;
  auto listener = recording.listen([&] { ++told; });
  recording.add("data: 0\n\ndata: 1\n\n");
  recording.add("data: 2\n\n");
  EXPECT_EQ(recording.from(0).events, "data: 0\n\ndata: 1\n\ndata: 2\n\n");
  EXPECT_EQ(recording.from(2).events, "data: 2\n\n");
  EXPECT_EQ(recording.from(9).events, "");
  EXPECT_FALSE(recording.from(0).over);
  EXPECT_EQ(recording.first(), 0);
  recording.add("data: 3\n\n");  // one more than there is room for
  EXPECT_EQ(recording.first(), 1);
  EXPECT_EQ(recording.from(0).events, "data: 1\n\ndata: 2\n\ndata: 3\n\n");
  EXPECT_EQ(told, 3);
  listener.reset();
  recording.end();
  EXPECT_EQ(told, 3);
  EXPECT_TRUE(recording.from(4).over);
  EXPECT_EQ(recording.from(3).next, 4);
  {
    api::Recording other(room);  // shares the room, and there is none left
    other.add("data: 0\n\n");
    EXPECT_EQ(other.first(), 1);
    EXPECT_EQ(other.from(0).events, "");
  }
  EXPECT_EQ(room->used, 27U);
}

}  // namespace
}  // namespace sluice::server
