// Python's operators over values.
#pragma once

#include <cstdint>
#include <string_view>

#include "jinja/value.h"

namespace sluice::jinja {

enum class Binary { add, subtract, multiply, divide, floor_divide, modulo, power };
enum class Comparison { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };

bool equal(Budget& budget, const Value& a, const Value& b);
bool less(Budget& budget, const Value& a, const Value& b);
bool compare(Budget& budget, Comparison comparison, const Value& a, const Value& b);
bool contains(Budget& budget, const Value& container, const Value& item);
// Python's `is`, as far as values have an identity.
bool identical(const Value& a, const Value& b);

Value binary(Budget& budget, Binary operation, const Value& a, const Value& b);
Value negate(const Value& value);

// len(), and the items of a loop; both raise what Python raises.
std::int64_t length(const Value& value);
Values iterate(Budget& budget, const Value& value);

// container[key] if it exists.
std::optional<Value> subscript(Budget& budget, const Value& container, const Value& key);
Value slice(Budget& budget, const Value& value, const Value& start, const Value& stop, const Value& step);

// Escapes &<>'" unless the value is markup already.
Value escape(Budget& budget, const Value& value);

}  // namespace sluice::jinja
