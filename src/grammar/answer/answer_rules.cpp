#include "grammar/answer/answer_rules.h"

#include <algorithm>

#include "base/error.h"
#include "grammar/answer/call_text.h"
#include "grammar/json/string.h"
#include "grammar/schema/compiler.h"

namespace sluice::grammar::answer {

AnswerRules::AnswerRules(const AnswerSource& source, const Parts& parts)
    : source_(source),
      parts_(parts),
      rules_(parts.rules),
      arena_(parts.lexer.arena()),
      text_(arena_, parts.vocabulary) {
  if (source_.must_call && source_.tools.empty())
    fail(ErrorKind::input, "a tool call is required, but there are no tools");
}

RuleId AnswerRules::compile(std::optional<RuleId> content) {
  const RuleId root = rules_.add_rule("answer");
  end_ = rules_.add_node(root);
  rules_.set_final(end_);
  NodeId answer = rules_.start(root);
  if (source_.thinking != AnswerSource::Thinking::no) {
    answer = rules_.add_node(root);
    add_thinking(rules_.start(root), answer);
  }
  add_answer(answer, content);
  return root;
}

// A call ends the thinking that it is in. If the answer is unconstrained text, thinking may also never end.
void AnswerRules::add_thinking(NodeId from, NodeId answer) {
  const RuleId rule = rules_.node(from).rule;
  NodeId inside = from;
  if (source_.thinking == AnswerSource::Thinking::allowed) {
    inside = rules_.add_node(rule);
    rules_.add_lexeme(from, arena_.concat(text_.gap(2), text_.recognised(source_.format.think_open)), inside);
    rules_.add_skip(from, answer);
  }
  std::vector<std::string_view> markers = call_markers_of_text();
  markers.push_back(source_.format.think_close);
  const NodeId closed = rules_.add_node(rule);
  rules_.add_lexeme(inside, text_.until(source_.format.think_close, markers), closed);
  rules_.add_lexeme(closed, text_.gap(4), answer);
  if (!source_.content && !source_.must_call) rules_.add_lexeme(inside, text_.without(markers), end_);
  if (calls_allowed() && !calls_open().empty())
    rules_.add_lexeme(inside, text_.until(calls_open(), markers), opened_calls(rule));
}

void AnswerRules::add_answer(NodeId from, std::optional<RuleId> content) {
  const RuleId rule = rules_.node(from).rule;
  const std::vector<std::string_view> markers = call_markers_of_text();
  const bool plain = calls_allowed() && calls_open().empty();
  if (content) {
    rules_.add_call(from, *content, end_);
  } else if (!source_.must_call) {
    // Text that begins like thinking or a call must be one.
    std::vector<regex::Id> beginnings;
    if (source_.thinking == AnswerSource::Thinking::allowed)
      beginnings.push_back(
          arena_.concat(text_.gap(regex::kNoLimit), arena_.literal(source_.format.think_open)));
    if (plain)
      beginnings.push_back(arena_.sequence({text_.gap(regex::kNoLimit), arena_.optional(arena_.byte('[')),
                                            text_.gap(regex::kNoLimit), arena_.byte('{'),
                                            text_.gap(regex::kNoLimit), arena_.literal("\"name\"")}));
    regex::Id excluded = arena_.concat(arena_.any_of(std::move(beginnings)), text_.any());
    rules_.add_lexeme(from, arena_.all_of({text_.without(markers), arena_.complement(excluded)}), end_);
  }
  if (!calls_allowed()) return;
  if (plain) return add_plain_calls(from);
  regex::Id open = text_.until(calls_open(), markers);
  if (content) open = text_.recognised(calls_open());
  if (source_.must_call) open = text_.marker(calls_open());
  rules_.add_lexeme(from, open, opened_calls(rule));
}

// The node after the marker that opens all calls.
NodeId AnswerRules::opened_calls(RuleId rule) {
  if (!opened_calls_) {
    opened_calls_ = rules_.add_node(rule);
    add_calls(*opened_calls_, call_form(), source_.parallel_calls);
  }
  return *opened_calls_;
}

// Node `from` comes after the marker that opens the first call.
void AnswerRules::add_calls(NodeId from, const CallForm& form, bool several) {
  const RuleId rule = rules_.node(from).rule;
  const NodeId given = rules_.add_node(rule), called = rules_.add_node(rule);
  for (const AnswerTool& tool : source_.tools) {
    const NodeId named = rules_.add_node(rule);
    const std::string name =
        source_.format.calls == ToolCallFormat::xml_parameters ? tool.name : json::escaped(tool.name);
    rules_.add_lexeme(from, arena_.sequence({form.begin, arena_.literal(name), form.name_end}), named);
    rules_.add_call(named, arguments(tool), given);
  }
  rules_.add_lexeme(given, form.end, called);
  rules_.add_lexeme(called, form.last, end_);
  if (several) rules_.add_lexeme(called, form.next, from);
}

// A call as the complete answer, or several in an array.
void AnswerRules::add_plain_calls(NodeId from) {
  const RuleId rule = rules_.node(from).rule;
  const schema::JsonTokens json = schema::json_tokens(arena_, JsonWhitespace::readable);
  CallForm form = json_form(regex::Arena::kEmpty, regex::Arena::kEmpty);
  const NodeId one = rules_.add_node(rule);
  rules_.add_skip(from, one);
  add_calls(one, form, false);
  if (!source_.parallel_calls) return;
  form.next = json.comma;
  form.last = json.close_array;
  const NodeId several = rules_.add_node(rule);
  rules_.add_lexeme(from, json.open_array, several);
  add_calls(several, form, true);
}

RuleId AnswerRules::arguments(const AnswerTool& tool) {
  if (const auto known = arguments_.find(&tool); known != arguments_.end()) return known->second;
  ArgumentRules writer(tool, rules_, parts_.lexer, parts_.max_bytes);
  const bool xml = source_.format.calls == ToolCallFormat::xml_parameters;
  return arguments_[&tool] = xml ? writer.as_xml(text_) : writer.as_json();
}

AnswerRules::CallForm AnswerRules::json_form(regex::Id begin, regex::Id end) const {
  const schema::JsonTokens json = schema::json_tokens(arena_, JsonWhitespace::readable);
  const regex::Id quote = arena_.byte('"');
  const regex::Id key = arena_.literals({"\"arguments\"", "\"parameters\""});
  const bool tags = source_.format.calls == ToolCallFormat::json_in_tags;
  return {.next = regex::Arena::kEmpty,
          .last = regex::Arena::kEmpty,
          .begin = arena_.sequence({begin, json.open_object, arena_.literal("\"name\""), json.colon, quote}),
          .name_end =
              arena_.sequence({quote, json.comma, tags ? arena_.literal("\"arguments\"") : key, json.colon}),
          .end = arena_.concat(json.close_object, end)};
}

AnswerRules::CallForm AnswerRules::call_form() const {
  const regex::Id gap = text_.gap(2);
  const auto text = [this](std::string_view literal) { return arena_.literal(literal); };
  const auto marker = [this](std::string_view name) { return text_.marker(name); };
  switch (source_.format.calls) {
    case ToolCallFormat::json_in_tags: {
      CallForm form = json_form(gap, arena_.concat(gap, marker("</tool_call>")));
      form.next = arena_.concat(gap, marker("<tool_call>"));
      return form;
    }
    case ToolCallFormat::xml_parameters:
      return {.next = arena_.concat(gap, marker("<tool_call>")),
              .last = regex::Arena::kEmpty,
              .begin = arena_.concat(gap, text("<function=")),
              .name_end = text(">\n"),
              .end = arena_.sequence({text("</function>"), gap, marker("</tool_call>")})};
    case ToolCallFormat::deepseek_v3:
      return {.next = gap,
              .last = arena_.concat(gap, marker("<｜tool▁calls▁end｜>")),
              .begin = arena_.sequence(
                  {marker("<｜tool▁call▁begin｜>"), text("function"), marker("<｜tool▁sep｜>")}),
              .name_end = text("\n```json\n"),
              .end = arena_.concat(text("\n```"), marker("<｜tool▁call▁end｜>"))};
    case ToolCallFormat::deepseek_v31:
      return {.next = gap,
              .last = arena_.concat(gap, marker("<｜tool▁calls▁end｜>")),
              .begin = marker("<｜tool▁call▁begin｜>"),
              .name_end = marker("<｜tool▁sep｜>"),
              .end = marker("<｜tool▁call▁end｜>")};
    default:
      return json_form(regex::Arena::kEmpty, regex::Arena::kEmpty);
  }
}

std::string_view AnswerRules::calls_open() const {
  switch (source_.format.calls) {
    case ToolCallFormat::json_in_tags:
    case ToolCallFormat::xml_parameters:
      return "<tool_call>";
    case ToolCallFormat::deepseek_v3:
    case ToolCallFormat::deepseek_v31:
      return "<｜tool▁calls▁begin｜>";
    default:
      return {};
  }
}

std::vector<std::string_view> AnswerRules::call_markers_of_text() const {
  if (!calls_allowed() || calls_open().empty()) return {};
  std::vector<std::string_view> markers = call_markers(source_.format.calls).begin;
  if (std::ranges::find(markers, calls_open()) == markers.end()) markers.push_back(calls_open());
  return markers;
}

}  // namespace sluice::grammar::answer
