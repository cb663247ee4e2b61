// JSON in files, requests and templates.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace sluice::cli {

using Json = nlohmann::ordered_json;

// As text, in one line unless `indent` is given; bytes that are not UTF-8 are replaced.
std::string dump(const Json& json, int indent = -1);

}  // namespace sluice::cli
