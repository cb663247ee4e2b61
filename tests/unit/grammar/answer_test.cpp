// Parsing answers as models write them: the result does not depend on how they are split.
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
  AnswerParser parser(
      format, {{"search", {{"limit", "integer"}, {"exact", "boolean"}}},
               {"calculate_area", {{"shape", "string"}, {"dimensions", "object"}, {"precision", "integer"}}},
               {"search_web", {{"query", "any"}, {"count", "any"}, {"verbose", "any"}}}});
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
const AnswerFormat kCoderOpen = {ToolCallFormat::xml_parameters, "<think>", "</think>", true};
const AnswerFormat kV31Open = {ToolCallFormat::deepseek_v31, "<think>", "</think>", true};
const AnswerFormat kV3 = {ToolCallFormat::deepseek_v3, "<think>", "</think>", true};
const AnswerFormat kV31 = {ToolCallFormat::deepseek_v31, "<think>", "</think>", false};
const AnswerFormat kContinued = {ToolCallFormat::none, "<think>", "</think>", false, true, true};
const AnswerFormat kPlain = {ToolCallFormat::plain_json, "<think>", "</think>", false};

std::vector<AnswerCase> answer_cases() {
  return {
      {{}, "Just <think> text.\n", "text: Just <think> text.\n"},
      {kQwen, "<think>\nHm, 1 < 2.\n</think>\n\nThe answer.", "think: Hm, 1 < 2.\ntext: The answer."},
      {kQwenOpen, "Hm.\n</think>\n\nYes </think> no.", "think: Hm.\ntext: Yes </think> no."},
      {kQwenOpen, "Never closed\n", "think: Never closed"},
      {kContinued, " girl ran.", "text:  girl ran."},  // its beginning is in the prompt
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
      {kPlain, "{\"name\": \"Tim\"}", "text: {\"name\": \"Tim\"}"},
      {kPlain, " [ {\"name\": \"a\", \"argum", "malformed: [ {\"name\": \"a\", \"argum"},
      {kPlain, "{\"nam", "malformed: {\"nam"},
      {kPlain, "{\"names\": ", "text: {\"names\": "},
      {kPlain, "<think>x</think>\n\n[1] is it", "think: x\ntext: [1] is it"},
      {kPlain, " \n{\"a\": 1}", "text: {\"a\": 1}"},
      {kPlain, "See {\"name\": \"a\", \"arguments\": {}}", "text: See {\"name\": \"a\", \"arguments\": {}}"},
  };
}

// Outputs that models are known to write, from the tests of other servers.
std::vector<AnswerCase> recorded_cases() {
  const std::string dallas =
      "<tool_call>\n<function=get_current_weather>\n<parameter=city>\nDallas\n</"
      "parameter>\n<parameter=state>\nTX\n"
      "</parameter>\n<parameter=unit>\nfahrenheit\n</parameter>\n</function>\n</tool_call>";
  const std::string dallas_call =
      R"(call get_current_weather: {"city":"Dallas","state":"TX","unit":"fahrenheit"})";
  const std::string v3_call = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>";
  return {
      {kCoder, dallas, dallas_call},
      {kCoder, "Sure! Let me check the weather for you." + dallas,
       "text: Sure! Let me check the weather for you.\n" + dallas_call},
      {kCoder, dallas + "\n" + dallas, dallas_call + "\n" + dallas_call},
      {kCoder,
       "<tool_call>\n<function=calculate_area>\n<parameter=shape>\nrectangle\n</"
       "parameter>\n<parameter=dimensions>\n"
       "{\"width\": 10, \n \"height\": "
       "20}\n</parameter>\n<parameter=precision>\n2\n</parameter>\n</function>\n"
       "</tool_call>",
       R"(call calculate_area: {"shape":"rectangle","dimensions":{"width":10,"height":20},"precision":2})"},
      // Nullable parameters: text that is not JSON is a string.
      {kCoder,
       "<tool_call>\n<function=search_web>\n<parameter=query>\nvllm tool "
       "parser\n</parameter>\n<parameter=count>\n10\n"
       "</parameter>\n<parameter=verbose>\ntrue\n</parameter>\n</function>\n</tool_call>",
       R"(call search_web: {"query":"vllm tool parser","count":10,"verbose":true})"},
      // Without the end of a parameter.
      {kCoder,
       "Let me check the weather for "
       "you:\n<tool_call>\n<function=get_current_weather>\n<parameter=city>\nDallas\n"
       "<parameter=state>\nTX\n</parameter>\n<parameter=unit>\nfahrenheit\n</parameter>\n</function>\n</"
       "tool_call>",
       "text: Let me check the weather for you:\n" + dallas_call},
      {kCoder, "<function=get_current_weather>\n<parameter=city>\nDallas\n</parameter>\n</function>",
       R"(call get_current_weather: {"city":"Dallas"})"},
      {kCoder, "<function=get_current_weather>\n<parameter=city>\nDallas\n</parameter>\n",
       "malformed: <function=get_current_weather>\n<parameter=city>\nDallas\n</parameter>\n"},
      // JSON in tags: without blanks, without an end, without an inner end, arguments as text.
      {kQwen,
       R"(<tool_call>{"name": "search", "arguments": {"q": "cats"}}</tool_call><tool_call>{"name": "search", "arguments": {"q": "dogs"}}</tool_call>)",
       "call search: {\"q\":\"cats\"}\ncall search: {\"q\":\"dogs\"}"},
      {kQwen, "<tool_call>\n{\"name\": \"final_answer\", \"arguments\": {\"trigger\": true}}",
       "call final_answer: {\"trigger\":true}"},
      {kQwen, "<tool_call>\n{\"name\": \"final_answer\", \"arguments\": {\"trigger\": true}",
       "malformed: <tool_call>\n{\"name\": \"final_answer\", \"arguments\": {\"trigger\": true}"},
      {kQwen,
       R"(<tool_call>{"name": "get_db_config", "arguments": "{\"param\": \"max_connections\"}"}</tool_call>)",
       R"(call get_db_config: {"param":"max_connections"})"},
      // A later tag for thinking is text.
      {kQwen, "The answer is 4.\n<think>", "text: The answer is 4.\n<think>"},
      {kV3,
       "</think><｜tool▁calls▁begin｜>" + v3_call +
           "send_message\n```json\n{\"text\": \"He said \\\"hello\\\"\", \"path\": "
           "\"C:\\\\Users\\\\file\"}\n```"
           "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       R"(call send_message: {"text":"He said \"hello\"","path":"C:\\Users\\file"})"},
      {kV3,
       "</think><｜tool▁calls▁begin｜>" + v3_call +
           "get_weather\n```json\n{\"city\": \"Tokyo\"\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "malformed: <｜tool▁calls▁begin｜>" + v3_call +
           "get_weather\n```json\n{\"city\": \"Tokyo\"\n```<｜tool▁call▁end｜>\ntext: <｜tool▁calls▁end｜>"},
      // Cut off after what opens calls, or without what opens each: nothing of it is lost.
      {kV31, "Let me look that up.<｜tool▁calls▁begin｜>get_weather",
       "text: Let me look that up.\nmalformed: <｜tool▁calls▁begin｜>\ntext: get_weather"},
      {kV31, "Let me look. <｜tool▁calls▁begin｜>\n",
       "text: Let me look.\nmalformed:  <｜tool▁calls▁begin｜>\ntext: \n"},
      {kV31, "<｜tool▁calls▁begin｜>foo<｜tool▁sep｜>{\"x\":1}<｜tool▁calls▁end｜>",
       "malformed: <｜tool▁calls▁begin｜>\ntext: foo<｜tool▁sep｜>{\"x\":1}<｜tool▁calls▁end｜>"},
      {kV31,
       "some prefix "
       "text<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>foo<｜tool▁sep｜>{\"x\":1}<｜tool▁call▁end｜>"
       "<｜tool▁call▁begin｜>bar<｜tool▁sep｜>{\"y\":2}<｜tool▁call▁end｜><｜tool▁calls▁end｜> some suffix "
       "text",
       "text: some prefix text\ncall foo: {\"x\":1}\ncall bar: {\"y\":2}\ntext: some suffix text"},
      {kCoder, "A call ends with </tool_call> there.", "text: A call ends with </tool_call> there."},
      // Text that is not a call is kept where it was, and what follows it is parsed.
      {kCoder,
       "<tool_call>\n<function=bad\n</function>\n</"
       "tool_call>\n<tool_call>\n<function=get_weather>\n<parameter="
       "city>Dallas</parameter>\n</function>\n</tool_call>",
       "malformed: <tool_call>\n<function=bad\n</function>\n</tool_call>\ncall get_weather: "
       "{\"city\":\"Dallas\"}"},
      {kCoder,
       "I'll show: <tool_call>example</tool_call>. Now "
       "real:\n<tool_call>\n<function=log>\n<parameter=msg>\nhi\n"
       "</parameter>\n</function>\n</tool_call>",
       "text: I'll show:\nmalformed:  <tool_call>example</tool_call>\ntext: . Now real:\ncall log: "
       "{\"msg\":\"hi\"}"},
      {kCoder, dallas + "\n" + dallas + "\nAll done!",
       dallas_call + "\n" + dallas_call + "\ntext: All done!"},
      // A word that is special in other languages is text if the parameter's type is unknown.
      {kCoder, "<tool_call>\n<function=f>\n<parameter=query>null</parameter>\n</function>\n</tool_call>",
       R"(call f: {"query":"null"})"},
      {kCoder,
       "<tool_call>\n<function=search_web>\n<parameter=count>None</parameter>\n</function>\n</tool_call>",
       R"(call search_web: {"count":null})"},
      // Tags of other calls inside a value do not end it.
      {kCoder,
       "<tool_call>\n<function=write_file>\n<parameter=content>\nlist = [\n  \"<tool_call>\",\n  "
       "\"<parameter=q>\",\n  \"</function>\"]\n</parameter>\n</function>\n</tool_call>\n",
       R"(call write_file: {"content":"list = [\n  \"<tool_call>\",\n  \"<parameter=q>\",\n  \"</function>\"]"})"},
      {kQwen, "<tool_call>\n{\"name\": \"do_thing\", \"arguments\": \"hello\"}\n</tool_call>",
       "malformed: <tool_call>\n{\"name\": \"do_thing\", \"arguments\": \"hello\"}\n</tool_call>"},
      {kQwen, "<tool_call>\n{\"arguments\": {\"q\": 1}, \"name\": \"search\"}\n</tool_call>",
       R"(call search: {"q":1})"},
      {kV31,
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": "
       "\"<｜tool▁call▁end｜>\"}<｜tool▁call▁end｜>"
       "<｜tool▁calls▁end｜>",
       R"(call f: {"a":"<｜tool▁call▁end｜>"})"},
      {kV3,
       "</think><｜tool▁calls▁begin｜>" + v3_call +
           "f\n```json\n{\"a\": \"```\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜> Done.",
       "call f: {\"a\":\"```\"}\ntext: Done."},
      // Values that are JSON, whatever alternatives their schemas have.
      {kCoder,
       "<tool_call>\n<function=search_web>\n<parameter=query>\n[\"a\", \"b\", 1, "
       "true]\n</parameter>\n</function>\n</tool_call>",
       R"(call search_web: {"query":["a","b",1,true]})"},
  };
}

// Contents of tagged parameters when models write programs, and calls during thinking.
std::vector<AnswerCase> program_cases() {
  const auto call = [](const std::string& function, const std::string& name, const std::string& value) {
    return "<tool_call>\n<function=" + function + ">\n<parameter=" + name + ">\n" + value +
           "\n</parameter>\n</function>\n</tool_call>";
  };
  const std::string time =
      "<｜tool▁call▁begin｜>get_time<｜tool▁sep｜>{\"city\": \"Oslo\"}<｜tool▁call▁end｜>";
  return {
      {kCoder, call("python", "code", "def f():\n    return \"x\"\n\nf()"),
       R"_(call python: {"code":"def f():\n    return \"x\"\n\nf()"})_"},
      {kCoder, call("python", "code", "    indented(1)"), R"_(call python: {"code":"    indented(1)"})_"},
      {kCoder, call("write", "text", "#include <a>\n"), R"_(call write: {"text":"#include <a>\n"})_"},
      {kCoder, call("html", "page", "<p>a &lt; b</p>\n</div>"),
       R"_(call html: {"page":"<p>a &lt; b</p>\n</div>"})_"},
      {kCoder, call("python", "code", "print('格 日本')"), R"_(call python: {"code":"print('格 日本')"})_"},
      {kCoder, call("search", "limit", "7") + "\n" + call("python", "code", "x"),
       "call search: {\"limit\":7}\ncall python: {\"code\":\"x\"}"},
      // Only the first call lacks its opening tag.
      {kCoder,
       "Well.\n<function=search>\n<parameter=limit>\n1\n</parameter>\n</function>\n</tool_call>\n" +
           call("search", "limit", "2"),
       "text: Well.\ncall search: {\"limit\":1}\ncall search: {\"limit\":2}"},
      // A call ends thinking, closed or not.
      {kCoderOpen, "I am\nthinking\n</think>\n\n" + call("search", "limit", "1"),
       "think: I am\nthinking\ncall search: {\"limit\":1}"},
      {kCoderOpen, call("search", "limit", "1"), "call search: {\"limit\":1}"},
      {kCoderOpen, "I must look.\n" + call("search", "limit", "1"),
       "think: I must look.\ncall search: {\"limit\":1}"},
      {kCoderOpen, "As JSON\n</think>\n\n{\"amount\": 1.5}", "think: As JSON\ntext: {\"amount\": 1.5}"},
      {kV31Open, "Why</think>So<｜tool▁calls▁begin｜>" + time + time + "<｜tool▁calls▁end｜>",
       "think: Why\ntext: So\ncall get_time: {\"city\":\"Oslo\"}\ncall get_time: {\"city\":\"Oslo\"}"},
      {kV31Open, "Why</think>\nSo", "think: Why\ntext: So"},
      {kV31, "So", "text: So"},
      {kQwen, "Hello\nyou<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}</tool_call>",
       "text: Hello\nyou\ncall f: {\"a\":1}"},
  };
}

std::vector<AnswerCase> all_cases() {
  std::vector<AnswerCase> cases = answer_cases();
  for (AnswerCase& one : recorded_cases()) cases.push_back(std::move(one));
  for (AnswerCase& one : program_cases()) cases.push_back(std::move(one));
  return cases;
}

TEST(AnswerParser, WholeAnswers) {
  for (const AnswerCase& one : all_cases())
    EXPECT_EQ(parsed(one.format, {one.answer}), one.expected) << one.answer;
}

TEST(AnswerParser, EveryCuttingGivesTheSame) {
  std::mt19937 random(3);
  for (const AnswerCase& one : all_cases()) {
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

TEST(AnswerParser, DeepNestingIsText) {
  const std::string deep =
      "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": " + std::string(200'000, '[') +
      std::string(200'000, ']') + "}}</tool_call>";
  AnswerParser parser(kQwen);
  const std::vector<AnswerDelta> deltas = parser.push(deep);
  ASSERT_EQ(deltas.size(), 1u);
  EXPECT_TRUE(deltas[0].malformed_call);
  EXPECT_EQ(deltas[0].text, deep);
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
