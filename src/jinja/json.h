// JSON input (the chat) and output (the tojson filter).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "jinja/value.h"

namespace sluice::jinja {

// The text must have been checked before. Integers beyond 64 bits become binary values with their digits.
nlohmann::ordered_json parse_document(std::string_view text);
Value from_json(const nlohmann::ordered_json& json);

// The options of Python's json.dumps.
struct JsonStyle {
  bool ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

std::string to_json(Budget& budget, const Value& value, const JsonStyle& style);

}  // namespace sluice::jinja
