#include "server/json.h"

#include <algorithm>

#include "server/api_error.h"

namespace sluice::server {

namespace {

constexpr int kDeepest = 100;

// How deeply brackets are nested outside of strings; invalid JSON is left to the parser.
int nesting(std::string_view text) {
  int depth = 0, deepest = 0;
  bool string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (string) {
      if (c == '\\') ++i;
      if (c == '"') string = false;
    } else if (c == '"') {
      string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

Json parse_json(std::string_view text) {
  if (nesting(text) > kDeepest) throw bad_request("the JSON is nested too deeply");
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw bad_request("the body is not valid JSON: at byte " + std::to_string(error.byte));
  } catch (const Json::exception&) {
    throw bad_request("the body contains a number that is too large");
  }
}

Json parse_or_null(std::string_view text) {
  if (nesting(text) > kDeepest) return nullptr;
  Json json = Json::parse(text, nullptr, false);
  return json.is_discarded() ? Json() : json;
}

Json parse_body(std::string_view body) {
  Json json = parse_json(body);
  if (!json.is_object()) throw bad_request("the body must be a JSON object");
  return json;
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sluice::server
