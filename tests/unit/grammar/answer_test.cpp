// Answers as models write them, taken apart: the same whatever the pieces they come in.
#include "sluice/answer.h"

#include <gtest/gtest.h>

#include <random>

namespace sluice {
namespace {

std::string shown(const std::vector<AnswerDelta>& deltas) {
  std::string out, last;
  for (const AnswerDelta& delta : deltas) {
    std::string label = delta.kind == AnswerDelta::Kind::thinking ? "think"
                        : delta.malformed_call                    ? "malformed"
                                                                  : "text";
    if (delta.kind == AnswerDelta::Kind::call) label = "call " + delta.function;
    const bool joins = label == last && delta.kind != AnswerDelta::Kind::call;
    out += joins ? delta.text : (out.empty() ? "" : "\n") + label + ": " + delta.text;
    last = label;
  }
  return out;
}

std::string parsed(const AnswerFormat& format, const std::vector<std::string>& pieces) {
  AnswerParser parser(format, {{"search", {{"limit", "integer"}, {"exact", "boolean"}}}});
  std::vector<AnswerDelta> all;
  for (const std::string& piece : pieces)
    for (AnswerDelta& delta : parser.push(piece)) all.push_back(std::move(delta));
  for (AnswerDelta& delta : parser.finish()) all.push_back(std::move(delta));
  return shown(all);
}

struct AnswerCase {
  AnswerFormat format;
  std::string answer, expected;
};

const AnswerFormat kQwen = {ToolCallFormat::json_in_tags, "<think>", "</think>", false};
const AnswerFormat kQwenOpen = {ToolCallFormat::json_in_tags, "<think>", "</think>", true};
const AnswerFormat kCoder = {ToolCallFormat::xml_parameters, "", "", false};
const AnswerFormat kV3 = {ToolCallFormat::deepseek_v3, "<think>", "</think>", true};
const AnswerFormat kV31 = {ToolCallFormat::deepseek_v31, "<think>", "</think>", false};
const AnswerFormat kPlain = {ToolCallFormat::plain_json, "<think>", "</think>", false};

std::vector<AnswerCase> answer_cases() {
  return {
      {{}, "Just <think> text.\n", "text: Just <think> text.\n"},
      {kQwen, "<think>\nHm, 1 < 2.\n</think>\n\nThe answer.", "think: Hm, 1 < 2.\ntext: The answer."},
      {kQwenOpen, "Hm.\n</think>\n\nYes </think> no.", "think: Hm.\ntext: Yes </think> no."},
      {kQwenOpen, "Never closed\n", "think: Never closed"},
      {kQwen,
       "Let me look.\n\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\", \"n\": "
       "2}}\n</tool_call>\n"
       "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>",
       "text: Let me look.\ncall get_weather: {\"city\":\"Paris\",\"n\":2}\ncall f: {}"},
      {kQwen,
       "<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": \"</tool_call> \\\" }\"}}</tool_call> done",
       "call f: {\"x\":\"</tool_call> \\\" }\"}\ntext: done"},
      {kQwen, "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call>",
       "call f: {\"a\":1}"},
      {kQwen, "So\n<tool_call>{\"name\": 5}</tool_call> and",
       "text: So\nmalformed: \n<tool_call>{\"name\": 5}</tool_call>\ntext:  and"},
      {kQwen, "<tool_call>{\"name\": \"f\", \"argum", "malformed: <tool_call>{\"name\": \"f\", \"argum"},
      {kQwenOpen, "I call <tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>",
       "think: I call\ncall f: {}"},
      {kQwenOpen, "Write <tool_call> tags</tool_call> so.</think>ok",
       "think: Write <tool_call> tags</tool_call> so.\ntext: ok"},
      {kCoder,
       "<tool_call>\n<function=search>\n<parameter=query>\n5 > 3\nnew "
       "line\n</parameter>\n<parameter=limit>\n5\n</parameter>\n"
       "<parameter=exact>\nTrue\n</parameter>\n</function>\n</tool_call>",
       "call search: {\"query\":\"5 > 3\\nnew line\",\"limit\":5,\"exact\":true}"},
      {kCoder, "Now:\n<function=other>\n<parameter=n>\n5\n</parameter>\n</function>\n</tool_call>\n",
       "text: Now:\ncall other: {\"n\":\"5\"}"},
      {kCoder, "<tool_call>\n<function=f>\n</function>\n</tool_call>", "call f: {}"},
      {kCoder, "<tool_call>\n<parameter=n>1</parameter></tool_call>",
       "malformed: <tool_call>\n<parameter=n>1</parameter></tool_call>"},
      {kV3,
       "Need "
       "it.</"
       "think>\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_time\n```json\n{\"tz\": "
       "\"UTC\"}\n```"
       "<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{}\n```<"
       "｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "think: Need it.\ncall get_time: {\"tz\":\"UTC\"}\ncall f: {}"},
      {kV31,
       "Ok.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_time<｜tool▁sep｜>{\"tz\": "
       "\"日本\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "text: Ok.\ncall get_time: {\"tz\":\"日本\"}"},
      {kPlain,
       "<think>x</think>\n[{\"name\": \"a\", \"parameters\": {\"b\": 1}}, {\"name\": \"c\", \"arguments\": "
       "{}}]\n",
       "think: x\ncall a: {\"b\":1}\ncall c: {}"},
      {kPlain, "{\"not\": \"a call\"}", "text: {\"not\": \"a call\"}"},
      {kPlain, "See {\"name\": \"a\", \"arguments\": {}}", "text: See {\"name\": \"a\", \"arguments\": {}}"},
  };
}

TEST(AnswerParser, WholeAnswers) {
  for (const AnswerCase& one : answer_cases())
    EXPECT_EQ(parsed(one.format, {one.answer}), one.expected) << one.answer;
}

TEST(AnswerParser, EveryCuttingGivesTheSame) {
  std::mt19937 random(3);
  for (const AnswerCase& one : answer_cases()) {
    const std::string& text = one.answer;
    for (std::size_t cut = 0; cut <= text.size(); ++cut)
      EXPECT_EQ(parsed(one.format, {text.substr(0, cut), text.substr(cut)}), one.expected)
          << "cut at " << cut << ": " << text;
    std::vector<std::string> bytes;
    for (const char c : text) bytes.emplace_back(1, c);
    EXPECT_EQ(parsed(one.format, bytes), one.expected) << "byte by byte: " << text;
    for (int round = 0; round < 50; ++round) {
      std::vector<std::string> pieces;
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = 1 + random() % 9;
        pieces.push_back(text.substr(at, length));
        at += length;
      }
      EXPECT_EQ(parsed(one.format, pieces), one.expected) << text;
    }
  }
}

TEST(AnswerFormat, RecognisedFromRenderings) {
  const std::string name(AnswerProbe::kFunction);
  const auto calls = [](const std::string& rendered) { return recognize_answer_format(rendered, "").calls; };
  EXPECT_EQ(calls("<|im_start|>assistant\n<tool_call>\n{\"name\": \"" + name +
                  "\", \"arguments\": {}}\n</tool_call>"),
            ToolCallFormat::json_in_tags);
  EXPECT_EQ(calls("<tool_call>\n<function=" + name + ">\n</function>\n</tool_call>"),
            ToolCallFormat::xml_parameters);
  EXPECT_EQ(calls("<｜tool▁call▁begin｜>function<｜tool▁sep｜>" + name + "\n```json\n{}\n```"),
            ToolCallFormat::deepseek_v3);
  EXPECT_EQ(calls("<｜tool▁call▁begin｜>" + name + "<｜tool▁sep｜>{}"), ToolCallFormat::deepseek_v31);
  EXPECT_EQ(calls("{\"name\": \"" + name + "\", \"parameters\": {}}"), ToolCallFormat::plain_json);
  EXPECT_EQ(calls("nothing of it"), ToolCallFormat::none);
  const AnswerFormat opened = recognize_answer_format("", "<|im_start|>assistant\n<think>\n");
  EXPECT_TRUE(opened.prompt_opens_thinking);
  EXPECT_EQ(opened.think_close, "</think>");
  EXPECT_FALSE(
      recognize_answer_format("", "<|im_start|>assistant\n<think>\n\n</think>\n\n").prompt_opens_thinking);
  EXPECT_TRUE(recognize_answer_format("no thinking", "assistant\n").think_open.empty());
}

}  // namespace
}  // namespace sluice
