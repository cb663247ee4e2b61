// JSON as schemas need it: members in the order of the text, numbers as exact decimals.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/json/decimal.h"

namespace sluice::grammar::json {

struct Value {
  enum class Kind { null, boolean, number, string, array, object };

  Value();  // null; out of line, because std::pair needs to know it while the type is incomplete

  Kind kind = Kind::null;
  bool boolean = false;
  Decimal number;
  std::string string;
  std::vector<Value> items;
  std::vector<std::pair<std::string, Value>> members;

  static Value parse(std::string_view text, std::size_t max_bytes);
  static Value of(bool value);
  static Value of(std::string value);
  static Value of(Decimal value);
  static Value array(std::vector<Value> items);
  static Value object(std::vector<std::pair<std::string, Value>> members);

  bool is_object() const { return kind == Kind::object; }
  bool is_array() const { return kind == Kind::array; }
  bool is_string() const { return kind == Kind::string; }
  bool is_number() const { return kind == Kind::number; }
  bool is_boolean() const { return kind == Kind::boolean; }
  // The number of values it consists of, itself included.
  std::size_t count() const;
  // The member of an object, or null.
  const Value* find(std::string_view key) const;

  // Equality as JSON defines it: 1 and 1.0 are equal, and the order of members does not matter.
  friend bool operator==(const Value& a, const Value& b);
};

}  // namespace sluice::grammar::json
