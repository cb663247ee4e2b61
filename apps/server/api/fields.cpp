#include "server/api/fields.h"

#include <fmt/core.h>

#include <cmath>

#include "server/api_error.h"

namespace sluice::server::api {

namespace {

[[noreturn]] void wrong_type(std::string_view name, std::string_view expected) {
  throw bad_request(fmt::format("Invalid type for '{}': expected {}.", name, expected), std::string(name),
                    "invalid_type");
}

}  // namespace

const Json* Fields::find(std::string_view name) {
  known_.emplace(name);
  const auto at = object_.find(std::string(name));
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

const Json& Fields::need(std::string_view name) {
  const Json* value = find(name);
  if (value == nullptr)
    throw bad_request(fmt::format("Missing required parameter: '{}'.", name), std::string(name),
                      "missing_required_parameter");
  return *value;
}

std::optional<std::string> Fields::text(std::string_view name) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) wrong_type(name, "a string");
  return value->get<std::string>();
}

std::optional<bool> Fields::flag(std::string_view name) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) wrong_type(name, "a boolean");
  return value->get<bool>();
}

std::optional<std::int64_t> Fields::integer(std::string_view name, std::int64_t least, std::int64_t most) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  const bool fits = value->is_number_integer() &&
                    !(value->is_number_unsigned() && value->get<std::uint64_t>() > std::uint64_t(INT64_MAX));
  if (!fits) wrong_type(name, "an integer");
  const auto number = value->get<std::int64_t>();
  if (number < least || number > most)
    throw bad_request(fmt::format("Invalid '{}': {} is not between {} and {}.", name, number, least, most),
                      std::string(name), "integer_out_of_range");
  return number;
}

std::optional<double> Fields::number(std::string_view name, double least, double most) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) wrong_type(name, "a number");
  const auto number = value->get<double>();
  if (!(number >= least && number <= most))
    throw bad_request(fmt::format("Invalid '{}': {} is not between {} and {}.", name, number, least, most),
                      std::string(name), "decimal_out_of_range");
  return number;
}

std::vector<std::string> Fields::texts(std::string_view name, std::size_t most) {
  const Json* value = find(name);
  std::vector<std::string> texts;
  if (value == nullptr) return texts;
  if (value->is_string()) {
    texts.push_back(value->get<std::string>());
  } else if (value->is_array()) {
    for (const Json& one : *value) {
      if (!one.is_string()) wrong_type(name, "a string or an array of strings");
      texts.push_back(one.get<std::string>());
    }
  } else {
    wrong_type(name, "a string or an array of strings");
  }
  if (texts.size() > most)
    throw bad_request(fmt::format("Invalid '{}': at most {} are allowed.", name, most), std::string(name),
                      "array_above_max_length");
  return texts;
}

const Json* Fields::object(std::string_view name) {
  const Json* value = find(name);
  if (value != nullptr && !value->is_object()) wrong_type(name, "an object");
  return value;
}

const Json* Fields::array(std::string_view name) {
  const Json* value = find(name);
  if (value != nullptr && !value->is_array()) wrong_type(name, "an array");
  return value;
}

void Fields::ignore(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) known_.emplace(name);
}

void Fields::refuse_others() const {
  for (const auto& [name, value] : object_.items())
    if (!known_.contains(name))
      throw bad_request(fmt::format("Unrecognized request argument supplied: {}", name), name,
                        "unknown_parameter");
}

}  // namespace sluice::server::api
