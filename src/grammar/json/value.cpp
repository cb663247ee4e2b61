#include "grammar/json/value.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/quote.h"

namespace sluice::grammar::json {
namespace {

constexpr std::size_t kMaxJsonDepth = 200;
constexpr std::size_t kMaxValues = 1'000'000;  // each takes far more memory than its text

class ValueBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Value take() { return std::move(root_); }

  bool null() override { return place({}); }
  bool boolean(bool value) override { return place(Value::of(value)); }
  bool number_integer(number_integer_t value) override { return number(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return number(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return number(text); }
  bool string(string_t& value) override { return place(Value::of(std::move(value))); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(Value::Kind::object); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Value::Kind::array); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    open_.back().members.emplace_back(std::move(name), Value());
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
  bool number(const std::string& text) { return place(Value::of(Decimal::parse(text))); }
  bool place(Value value) {
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
  bool open(Value::Kind kind) {
    if (open_.size() >= kMaxJsonDepth)
      fail(ErrorKind::input, "schema: JSON nested deeper than {} levels", kMaxJsonDepth);
    open_.emplace_back().kind = kind;
    return true;
  }
  bool close() {
    Value value = std::move(open_.back());
    open_.pop_back();
    check_keys(value);
    return place(std::move(value));
  }
  static void check_keys(const Value& value) {
    std::vector<std::string_view> keys;
    for (const auto& [key, member] : value.members) keys.push_back(key);
    std::ranges::sort(keys);
    if (const auto twice = std::ranges::adjacent_find(keys); twice != keys.end())
      fail(ErrorKind::input, "schema: the key {} appears twice in one object", quote(*twice));
  }

  Value root_;
  std::vector<Value> open_;
  std::size_t values_ = 0;
};

}  // namespace

Value::Value() = default;

Value Value::parse(std::string_view text, std::size_t max_bytes) {
  if (text.size() > max_bytes)
    fail(ErrorKind::resource, "schema: {} bytes, expected at most {}", text.size(), max_bytes);
  ValueBuilder builder;
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

Value Value::of(bool value) {
  Value result;
  result.kind = Kind::boolean;
  result.boolean = value;
  return result;
}

Value Value::of(std::string value) {
  Value result;
  result.kind = Kind::string;
  result.string = std::move(value);
  return result;
}

Value Value::of(Decimal value) {
  Value result;
  result.kind = Kind::number;
  result.number = std::move(value);
  return result;
}

Value Value::array(std::vector<Value> items) {
  Value result;
  result.kind = Kind::array;
  result.items = std::move(items);
  return result;
}

Value Value::object(std::vector<std::pair<std::string, Value>> members) {
  Value result;
  result.kind = Kind::object;
  result.members = std::move(members);
  return result;
}

std::size_t Value::count() const {
  std::size_t count = 1;
  for (const Value& item : items) count += item.count();
  for (const auto& [name, value] : members) count += value.count();
  return count;
}

const Value* Value::find(std::string_view key) const {
  for (const auto& [name, value] : members)
    if (name == key) return &value;
  return nullptr;
}

bool operator==(const Value& a, const Value& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Value::Kind::null:
      return true;
    case Value::Kind::boolean:
      return a.boolean == b.boolean;
    case Value::Kind::number:
      return a.number == b.number;
    case Value::Kind::string:
      return a.string == b.string;
    case Value::Kind::array:
      return a.items == b.items;
    case Value::Kind::object: {
      if (a.members.size() != b.members.size()) return false;
      using Member = std::pair<std::string, Value>;
      const auto sorted = [](const Value& object) {
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

}  // namespace sluice::grammar::json
