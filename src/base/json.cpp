#include "base/json.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/files/mapped_file.h"
#include "base/json_builder.h"

namespace sluice {
namespace {

// nlohmann-json's own builder keeps the last of two equal keys, and its filtering variant takes quadratic
// time on large objects.
class StrictBuilder : public JsonBuilder<Json> {
 public:
  StrictBuilder(std::string_view text, const JsonSource& where, const JsonLimits& limits)
      : JsonBuilder(limits.depth), text_(text), where_(where), limits_(limits) {}

  bool key(std::string& name) override {
    const auto [member, added] = innermost().get_ref<Json::object_t&>().try_emplace(std::move(name));
    if (!added)
      fail(where_.kind, "{}: the key {} appears twice in one object", where_.name, quote(member->first));
    return expect_value(member->second);
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception& error) override {
    const size_t offset = position == 0 ? 0 : std::min(position - 1, text_.size());
    const auto line = 1 + std::count(text_.begin(), text_.begin() + offset, '\n');
    // The message of nlohmann-json starts with its own error code and position, and quotes the text, whatever
    // it contains.
    std::string_view reason = error.what();
    if (const size_t colon = reason.find(": "); colon != std::string_view::npos)
      reason.remove_prefix(colon + 2);
    fail(where_.kind, "{}: invalid JSON at byte {}, line {}: {}", where_.name, offset, line, quote(reason));
  }

 protected:
  bool too_deep() override {
    fail(where_.kind, "{}: JSON nested deeper than {} levels", where_.name, limits_.depth);
  }

 private:
  std::string_view text_;
  JsonSource where_;
  const JsonLimits& limits_;
};

[[noreturn]] void fail_type(const Json& value, const JsonSource& where, std::string_view expected) {
  if (value.is_structured()) {
    fail(where.kind, "{} is an {}, expected {}", where.name, value.type_name(), expected);
  }
  constexpr size_t kShown = 60;
  std::string shown = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (shown.size() > kShown) shown = shown.substr(0, kShown) + "...";
  fail(where.kind, "{} is {}, expected {}", where.name, shown, expected);
}

template <class T>
std::vector<T> elements(const Json& value, const JsonSource& where) {
  if (!value.is_array()) fail_type(value, where, "an array");
  std::vector<T> result;
  result.reserve(value.size());
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string name = fmt::format("{}[{}]", where.name, i);
    result.push_back(json_as<T>(value[i], {name, where.kind}));
  }
  return result;
}

}  // namespace

Json parse_json(std::string_view text, const JsonSource& where, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    fail(where.kind, "{}: JSON of {} bytes, expected at most {}", where.name, text.size(), limits.bytes);
  }
  StrictBuilder builder(text, where, limits);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

Json read_json_file(const std::filesystem::path& path, const JsonLimits& limits) {
  const files::MappedFile file(path);
  const auto bytes = file.bytes();
  return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string(), limits);
}

template <>
bool json_as(const Json& value, const JsonSource& where) {
  if (!value.is_boolean()) fail_type(value, where, "true or false");
  return value.get<bool>();
}

template <>
int64_t json_as(const Json& value, const JsonSource& where) {
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<uint64_t>() > kMax)) {
    fail_type(value, where, "a 64-bit integer");
  }
  return value.get<int64_t>();
}

template <>
int json_as(const Json& value, const JsonSource& where) {
  const auto wide = json_as<int64_t>(value, where);
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max()) {
    fail_type(value, where, "a 32-bit integer");
  }
  return wide;
}

template <>
double json_as(const Json& value, const JsonSource& where) {
  if (!value.is_number()) fail_type(value, where, "a number");
  return value.get<double>();
}

template <>
std::string json_as(const Json& value, const JsonSource& where) {
  if (!value.is_string()) fail_type(value, where, "a string");
  return value.get<std::string>();
}

template <>
std::vector<int> json_as(const Json& value, const JsonSource& where) {
  return elements<int>(value, where);
}

template <>
std::vector<int64_t> json_as(const Json& value, const JsonSource& where) {
  return elements<int64_t>(value, where);
}

template <>
std::vector<double> json_as(const Json& value, const JsonSource& where) {
  return elements<double>(value, where);
}

template <>
std::vector<std::string> json_as(const Json& value, const JsonSource& where) {
  return elements<std::string>(value, where);
}

const Json* json_find(const Json& object, std::string_view key, const JsonSource& where) {
  if (!object.is_object()) fail_type(object, where, "an object");
  const auto member = object.find(key);
  return member == object.end() || member->is_null() ? nullptr : &*member;
}

}  // namespace sluice
