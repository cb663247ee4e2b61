#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/integer_cast.h"
#include "grammar/answer/call_text.h"
#include "sluice/answer.h"

namespace sluice {

using grammar::answer::CallMarkers;
using grammar::answer::ParsedCall;

namespace {

constexpr std::string_view kBlanks = " \t\r\n";

// The length of the longest suffix of the text that could be the beginning of a marker.
std::size_t unfinished_marker(std::string_view text, std::span<const std::string_view> markers) {
  std::size_t longest = 0;
  for (const std::string_view marker : markers)
    for (std::size_t size = std::min(marker.size() - 1, text.size()); size > longest; --size)
      if (text.ends_with(marker.substr(0, size))) longest = size;
  return longest;
}

}  // namespace

AnswerFormat recognize_answer_format(std::string_view call, std::string_view prompt) {
  AnswerFormat format;
  const auto has = [call](std::string_view text) { return call.find(text) != std::string_view::npos; };
  const std::string function(AnswerProbe::kFunction);
  if (has("<function=" + function + ">")) {
    format.calls = ToolCallFormat::xml_parameters;
  } else if (has("<｜tool▁sep｜>" + function)) {
    format.calls = ToolCallFormat::deepseek_v3;
  } else if (has(function + "<｜tool▁sep｜>")) {
    format.calls = ToolCallFormat::deepseek_v31;
  } else if (const std::size_t at = call.rfind(function); at != std::string_view::npos) {
    const std::size_t tag = call.rfind("<tool_call>", at);
    format.calls = tag != std::string_view::npos && call.find("</tool_call>", tag) > at
                       ? ToolCallFormat::json_in_tags
                       : ToolCallFormat::plain_json;
  }
  // Only the end of the prompt counts: a template that switches thinking off closes what it opened, and a
  // question may mention the markers, too.
  prompt = prompt.substr(0, prompt.find_last_not_of(kBlanks) + 1);
  const bool opens = prompt.ends_with("<think>"), closes = prompt.ends_with("</think>");
  if (has("</think>") || opens || closes) {
    format.think_open = "<think>";
    format.think_close = "</think>";
    format.prompt_opens_thinking = opens;
    format.prompt_ends_thinking = closes;
  }
  return format;
}

struct AnswerParser::State {
  AnswerFormat format;
  ParameterTypes types;
  std::string held;  // read, but not interpreted yet
  bool thinking = false;
  bool at_start = true;      // skip blanks at the start of thinking or content
  bool may_think = true;     // nothing was emitted yet: thinking only comes first
  std::string begin;         // the marker of the call being read; empty outside
  std::size_t searched = 0;  // how far the end was searched for
  std::string blanks;        // blanks at the end of emitted text, dropped if a marker follows
  std::string wrapper;       // the text that opened calls, dropped once a call follows
  bool after_call = false;   // nothing was emitted since the last call
  std::vector<AnswerDelta> out;

  AnswerDelta::Kind kind() const {
    return thinking ? AnswerDelta::Kind::thinking : AnswerDelta::Kind::content;
  }

  void give(std::string_view text) {
    if (at_start) {
      text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
      if (text.empty()) return;
      at_start = may_think = false;
    }
    const std::size_t last = text.find_last_not_of(kBlanks);
    const std::size_t solid = last == std::string_view::npos ? 0 : last + 1;
    if (solid > 0) {
      give_wrapper();
      after_call = false;
      emit(blanks + std::string(text.substr(0, solid)));
      blanks.clear();
    }
    blanks += text.substr(solid);
  }
  // The text that should have opened calls did not, so it is content.
  void give_wrapper() {
    if (wrapper.empty()) return;
    AnswerDelta delta{.kind = kind(), .text = std::exchange(wrapper, {})};
    delta.malformed_call = !thinking;
    out.push_back(std::move(delta));
  }
  void emit(std::string text) {
    if (!out.empty() && out.back().kind == kind() && !out.back().malformed_call) {
      out.back().text += text;
    } else {
      out.push_back({.kind = kind(), .text = std::move(text)});
    }
  }

  std::vector<std::string_view> markers() const {
    std::vector<std::string_view> result;
    if (thinking && !format.think_close.empty()) result.push_back(format.think_close);
    const CallMarkers& calls = grammar::answer::call_markers(format.calls);
    result.insert(result.end(), calls.begin.begin(), calls.begin.end());
    result.insert(result.end(), calls.wrapper_begin.begin(), calls.wrapper_begin.end());
    result.insert(result.end(), calls.wrapper_end.begin(), calls.wrapper_end.end());
    return result;
  }

  void read() {
    while (!waits_for_all() && (begin.empty() ? read_text() : read_call(false))) {
    }
  }

  // Whether thinking begins: yes, no, or unknown until more text arrives.
  std::optional<bool> opens_thinking() const {
    if (!may_think || thinking || format.think_open.empty()) return false;
    const std::string_view text =
        std::string_view(held).substr(std::min(held.find_first_not_of(kBlanks), held.size()));
    if (text.starts_with(format.think_open)) return true;
    if (std::string_view(format.think_open).starts_with(text)) return std::nullopt;
    return false;
  }

  // Reads up to the next marker; false if more text is needed.
  bool read_text() {
    const std::optional<bool> opens = opens_thinking();
    if (!opens) return false;
    if (*opens) {
      held.erase(0, held.find(format.think_open) + format.think_open.size());
      thinking = true;
      may_think = false;
      return true;
    }
    const std::vector<std::string_view> known = markers();
    std::size_t first = std::string::npos;
    std::string_view marker;
    for (const std::string_view one : known) {
      const std::size_t at = held.find(one);
      if (at < first) {
        first = at;
        marker = one;
      }
    }
    if (first == std::string::npos) {
      const std::size_t keep = unfinished_marker(held, known);
      give(std::string_view(held).substr(0, held.size() - keep));
      held.erase(0, held.size() - keep);
      return false;
    }
    give(std::string_view(held).substr(0, first));
    held.erase(0, first + marker.size());
    take(marker);
    return true;
  }

  void take(std::string_view marker) {
    const CallMarkers& calls = grammar::answer::call_markers(format.calls);
    const auto is_one_of = [marker](const std::vector<std::string_view>& markers) {
      return std::ranges::find(markers, marker) != markers.end();
    };
    may_think = false;
    if (marker == format.think_close && thinking) {
      give_wrapper();
      thinking = false;
      at_start = true;
      blanks.clear();
    } else if (is_one_of(calls.begin)) {
      begin = marker;
      searched = 0;
    } else if (is_one_of(calls.wrapper_begin)) {
      give_wrapper();
      wrapper = std::exchange(blanks, {}) + std::string(marker);
      at_start = false;
    } else if (after_call) {
      blanks.clear();
    } else {
      give(marker);
    }
  }

  bool read_call(bool ended) {
    const CallMarkers& calls = grammar::answer::call_markers(format.calls);
    const auto which = to_size(std::ranges::find(calls.begin, begin) - calls.begin.begin());
    const std::string_view end = calls.end[which];
    const bool json = format.calls != ToolCallFormat::xml_parameters;
    std::size_t at = held.find(end, searched - std::min(searched, end.size()));
    searched = held.size();
    if (json && at != std::string::npos) at = grammar::answer::find_outside_strings(held, end);
    if (at == std::string::npos && !ended) return false;
    const std::size_t closing = at == std::string::npos ? 0 : end.size();
    at = std::min(at, held.size());  // a call may be complete without its closing marker
    std::optional<ParsedCall> call =
        grammar::answer::parse_call(format.calls, begin, std::string_view(held).substr(0, at), types);
    if (call && closing == 0 && begin == "<function=") call.reset();  // more parameters might have followed
    if (!call) {
      malformed(at, closing == 0 ? "" : end);
      return true;
    }
    // A call ends the thinking that it is in.
    thinking = may_think = false;
    at_start = true;
    out.push_back({.kind = AnswerDelta::Kind::call,
                   .text = std::move(call->arguments),
                   .function = std::move(call->function)});
    held.erase(0, at + closing);
    begin.clear();
    blanks.clear();
    wrapper.clear();
    after_call = true;
    return true;
  }

  // Emits the text as it was written.
  void malformed(std::size_t size, std::string_view end) {
    AnswerDelta delta{.kind = kind(),
                      .text = std::exchange(wrapper, {}) + std::exchange(blanks, {}) + begin +
                              held.substr(0, size) + std::string(end)};
    delta.malformed_call = !thinking;
    out.push_back(std::move(delta));
    held.erase(0, std::min(size + end.size(), held.size()));
    begin.clear();
    at_start = after_call = false;
  }

  // An answer that begins like JSON may turn out to be a call.
  bool waits_for_all() const {
    if (format.calls != ToolCallFormat::plain_json || thinking || !at_start) return false;
    const std::size_t first = held.find_first_not_of(kBlanks);
    return first != std::string::npos && (held[first] == '{' || held[first] == '[');
  }
};

AnswerParser::AnswerParser(AnswerFormat format, ParameterTypes types) : state_(std::make_unique<State>()) {
  state_->thinking = format.prompt_opens_thinking;
  state_->at_start = !format.continues;
  state_->may_think = !format.prompt_opens_thinking && !format.prompt_ends_thinking;
  state_->format = std::move(format);
  state_->types = std::move(types);
}

AnswerParser::~AnswerParser() = default;
AnswerParser::AnswerParser(AnswerParser&&) noexcept = default;

std::vector<AnswerDelta> AnswerParser::push(std::string_view text) {
  state_->held += text;
  state_->read();
  return std::exchange(state_->out, {});
}

std::vector<AnswerDelta> AnswerParser::finish() {
  State& state = *state_;
  if (state.waits_for_all()) {
    if (auto calls = grammar::answer::parse_plain_calls(state.held)) {
      for (ParsedCall& call : *calls)
        state.out.push_back({.kind = AnswerDelta::Kind::call,
                             .text = std::move(call.arguments),
                             .function = std::move(call.function)});
      state.held.clear();
      return std::exchange(state.out, {});
    }
  }
  if (state.waits_for_all()) {
    state.held.erase(0, state.held.find_first_not_of(kBlanks));
    if (grammar::answer::begins_like_plain_call(state.held)) {
      state.malformed(state.held.size(), "");
      return std::exchange(state.out, {});
    }
    state.at_start = false;  // it is not a call, so it is text
  }
  state.may_think &= state.opens_thinking().has_value();  // what could have opened thinking did not
  state.read();
  if (!state.begin.empty()) {
    state.read_call(true);
  } else {
    state.give(std::exchange(state.held, {}));
    state.give_wrapper();
    if (!state.thinking && !state.at_start && !state.blanks.empty())
      state.emit(std::exchange(state.blanks, {}));
  }
  return std::exchange(state.out, {});
}

}  // namespace sluice
