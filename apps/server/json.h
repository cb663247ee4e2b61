// JSON as requests hold it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace sluice::server {

using Json = nlohmann::ordered_json;

// The object in a request's body. Throws ApiError for what is no JSON, no object, or nested deeper than any
// request needs to be: code that walks values recursively may then do so.
Json parse_body(std::string_view body);
// Of any JSON value, under the same rules.
Json parse_json(std::string_view text);
// The same for text that need not be JSON at all, such as a model's: null where it is none.
Json parse_or_null(std::string_view text);
// As one line; bytes that are no UTF-8 are replaced.
std::string dump(const Json& json);

}  // namespace sluice::server
