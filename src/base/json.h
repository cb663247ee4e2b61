// JSON from files and requests: strict, limited, with errors that name the location. Code that inspects a
// Json includes nlohmann/json.hpp itself, because that takes longer to compile than most files here.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/quote.h"

namespace sluice {

using Json = nlohmann::json;

struct JsonLimits {
  size_t bytes = size_t{64} << 20;
  int depth = 128;
};

// Where a value came from, for messages: a name, and the kind of error that a wrong value is.
struct JsonSource {
  template <std::convertible_to<std::string_view> Name>
  // NOLINTNEXTLINE(google-explicit-constructor): a plain name is the usual argument
  JsonSource(const Name& name_, ErrorKind kind_ = ErrorKind::checkpoint) : name(name_), kind(kind_) {}

  std::string_view name;
  ErrorKind kind;
};

// Rejects what nlohmann-json would accept: duplicate keys, deep nesting, huge texts.
Json parse_json(std::string_view text, const JsonSource& where, const JsonLimits& limits = {});
Json read_json_file(const std::filesystem::path& path, const JsonLimits& limits = {});

// The value as a T: bool, int, int64_t, double (integers too), std::string, or a std::vector of these.
// `where` names the value.
template <class T>
T json_as(const Json& value, const JsonSource& where);
template <>
bool json_as(const Json&, const JsonSource&);
template <>
int json_as(const Json&, const JsonSource&);
template <>
int64_t json_as(const Json&, const JsonSource&);
template <>
double json_as(const Json&, const JsonSource&);
template <>
std::string json_as(const Json&, const JsonSource&);
template <>
std::vector<int> json_as(const Json&, const JsonSource&);
template <>
std::vector<int64_t> json_as(const Json&, const JsonSource&);
template <>
std::vector<double> json_as(const Json&, const JsonSource&);
template <>
std::vector<std::string> json_as(const Json&, const JsonSource&);

// The member of `object`, or null; an explicit null counts as absent, as in Python's configuration files.
const Json* json_find(const Json& object, std::string_view key, const JsonSource& where);

template <class T>
std::optional<T> json_optional(const Json& object, std::string_view key, const JsonSource& where) {
  const Json* value = json_find(object, key, where);
  if (value == nullptr) return std::nullopt;
  const std::string name = fmt::format("{}: {}", where.name, quote(key));
  return json_as<T>(*value, {name, where.kind});
}

template <class T>
T json_get(const Json& object, std::string_view key, const JsonSource& where) {
  std::optional<T> value = json_optional<T>(object, key, where);
  if (!value) fail(where.kind, "{}: the required key {} is missing", where.name, quote(key));
  return *std::move(value);
}

template <class T>
T json_get_or(const Json& object, std::string_view key, T fallback, const JsonSource& where) {
  return json_optional<T>(object, key, where).value_or(std::move(fallback));
}

}  // namespace sluice
