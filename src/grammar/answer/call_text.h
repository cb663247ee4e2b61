// The text of tool calls in the formats that models write.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/answer.h"

namespace sluice::grammar::answer {

struct CallMarkers {
  std::vector<std::string_view> begin, end;                  // the i-th end closes the i-th begin
  std::vector<std::string_view> wrapper_begin, wrapper_end;  // around all calls
};

const CallMarkers& call_markers(ToolCallFormat format);

struct ParsedCall {
  std::string function, arguments;
};

// Whether an answer that is not valid JSON begins like a plain call: it was cut off or damaged.
bool begins_like_plain_call(std::string_view answer);

// The call between a begin and an end marker, or nothing if it is malformed.
std::optional<ParsedCall> parse_call(ToolCallFormat format, std::string_view begin, std::string_view body,
                                     const AnswerParser::ParameterTypes& types);
// The calls, if the answer consists of them alone.
std::optional<std::vector<ParsedCall>> parse_plain_calls(std::string_view answer);
// The position of the marker outside of JSON strings, or npos.
std::size_t find_outside_strings(std::string_view text, std::string_view marker);

}  // namespace sluice::grammar::answer
