// The text of tool calls in the formats that models write.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/answer.h"

namespace sluice::grammar {

struct CallMarkers {
  std::vector<std::string_view> begin, end;                  // the i-th end closes what the i-th begin opened
  std::vector<std::string_view> wrapper_begin, wrapper_end;  // around all calls
};

const CallMarkers& call_markers(ToolCallFormat format);

struct ParsedCall {
  std::string function, arguments;
};

// Whether an answer that is no JSON begins as plain calls do: it was cut, or went wrong on its way.
bool begins_like_plain_call(std::string_view answer);

// The call between a begin and an end marker, or nothing if it is malformed.
std::optional<ParsedCall> parse_call(ToolCallFormat format, std::string_view begin, std::string_view body,
                                     const AnswerParser::ParameterTypes& types);
// The calls that a whole answer is, or nothing.
std::optional<std::vector<ParsedCall>> parse_plain_calls(std::string_view answer);
// Where the marker lies outside of strings of JSON, or npos.
std::size_t find_outside_strings(std::string_view text, std::string_view marker);

}  // namespace sluice::grammar
