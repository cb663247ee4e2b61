#include "grammar/json/value.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/quote.h"

namespace sluice::grammar {
namespace {

constexpr std::size_t kMaxJsonDepth = 200;
constexpr std::size_t kMaxValues = 1'000'000;  // each takes far more memory than its text

class ValueBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonValue take() { return std::move(root_); }

  bool null() override { return place({}); }
  bool boolean(bool value) override { return place(JsonValue::of(value)); }
  bool number_integer(number_integer_t value) override { return number(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return number(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return number(text); }
  bool string(string_t& value) override { return place(JsonValue::of(std::move(value))); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(JsonValue::Kind::object); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(JsonValue::Kind::array); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    open_.back().members.emplace_back(std::move(name), JsonValue());
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& error) override {
    constexpr int kNumberOverflow = 406;
    if (error.id == kNumberOverflow)
      fail(ErrorKind::unsupported, "schema: the number that ends at byte {} is out of range", position);
    fail(ErrorKind::input, "schema: invalid JSON at byte {}", position == 0 ? 0 : position - 1);
  }

 private:
  bool number(const std::string& text) { return place(JsonValue::of(Decimal::parse(text))); }
  bool place(JsonValue value) {
    if (++values_ > kMaxValues) fail(ErrorKind::resource, "schema: more than {} values", kMaxValues);
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().is_array()) {
      open_.back().items.push_back(std::move(value));
    } else {
      open_.back().members.back().second = std::move(value);
    }
    return true;
  }
  bool open(JsonValue::Kind kind) {
    if (open_.size() >= kMaxJsonDepth)
      fail(ErrorKind::input, "schema: JSON nested deeper than {} levels", kMaxJsonDepth);
    open_.emplace_back().kind = kind;
    return true;
  }
  bool close() {
    JsonValue value = std::move(open_.back());
    open_.pop_back();
    check_keys(value);
    return place(std::move(value));
  }
  static void check_keys(const JsonValue& value) {
    std::vector<std::string_view> keys;
    for (const auto& [key, member] : value.members) keys.push_back(key);
    std::ranges::sort(keys);
    if (const auto twice = std::ranges::adjacent_find(keys); twice != keys.end())
      fail(ErrorKind::input, "schema: the key {} appears twice in one object", quote(*twice));
  }

  JsonValue root_;
  std::vector<JsonValue> open_;
  std::size_t values_ = 0;
};

}  // namespace

JsonValue::JsonValue() = default;

JsonValue JsonValue::parse(std::string_view text, std::size_t max_bytes) {
  if (text.size() > max_bytes)
    fail(ErrorKind::resource, "schema: {} bytes, expected at most {}", text.size(), max_bytes);
  ValueBuilder builder;
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

JsonValue JsonValue::of(bool value) {
  JsonValue result;
  result.kind = Kind::boolean;
  result.boolean = value;
  return result;
}

JsonValue JsonValue::of(std::string value) {
  JsonValue result;
  result.kind = Kind::string;
  result.string = std::move(value);
  return result;
}

JsonValue JsonValue::of(Decimal value) {
  JsonValue result;
  result.kind = Kind::number;
  result.number = std::move(value);
  return result;
}

JsonValue JsonValue::array(std::vector<JsonValue> items) {
  JsonValue result;
  result.kind = Kind::array;
  result.items = std::move(items);
  return result;
}

JsonValue JsonValue::object(std::vector<std::pair<std::string, JsonValue>> members) {
  JsonValue result;
  result.kind = Kind::object;
  result.members = std::move(members);
  return result;
}

std::size_t JsonValue::count() const {
  std::size_t count = 1;
  for (const JsonValue& item : items) count += item.count();
  for (const auto& [name, value] : members) count += value.count();
  return count;
}

const JsonValue* JsonValue::find(std::string_view key) const {
  for (const auto& [name, value] : members)
    if (name == key) return &value;
  return nullptr;
}

bool operator==(const JsonValue& a, const JsonValue& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case JsonValue::Kind::null:
      return true;
    case JsonValue::Kind::boolean:
      return a.boolean == b.boolean;
    case JsonValue::Kind::number:
      return a.number == b.number;
    case JsonValue::Kind::string:
      return a.string == b.string;
    case JsonValue::Kind::array:
      return a.items == b.items;
    case JsonValue::Kind::object: {
      if (a.members.size() != b.members.size()) return false;
      using Member = std::pair<std::string, JsonValue>;
      const auto sorted = [](const JsonValue& object) {
        std::vector<const Member*> members;
        for (const Member& member : object.members) members.push_back(&member);
        std::ranges::sort(members, {}, &Member::first);
        return members;
      };
      return std::ranges::equal(sorted(a), sorted(b),
                                [](const Member* one, const Member* other) { return *one == *other; });
    }
  }
  return false;
}

}  // namespace sluice::grammar
