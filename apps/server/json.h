// JSON in requests.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace sluice::server {

using Json = nlohmann::ordered_json;

// The object in a request's body. Throws ApiError if it is not JSON, not an object, or nested more deeply
// than any request needs, so code may walk values recursively.
Json parse_body(std::string_view body);
// Any JSON value, under the same rules.
Json parse_json(std::string_view text);
// The same for text that may not be JSON, such as a model's: null if it is not.
Json parse_or_null(std::string_view text);
// On one line; bytes that are not UTF-8 are replaced.
std::string dump(const Json& json);

}  // namespace sluice::server
