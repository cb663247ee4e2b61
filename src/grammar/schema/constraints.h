// What several schemas that must all hold say together, by type of value.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "grammar/json/number.h"
#include "grammar/json/value.h"
#include "grammar/schema/scope.h"

namespace sluice::grammar::schema {

// Types of values as bits. "number" is integers and fractions, which are separate because "integer" is a type
// too.
enum TypeBit : unsigned {
  kNull = 1,
  kBoolean = 2,
  kObject = 4,
  kArray = 8,
  kString = 16,
  kInteger = 32,
  kFraction = 64,
  kAllTypes = 127,
};

// No array or object of an answer is this large, and no string this long: maxima from here on count as none,
// and minima from here on cannot be met.
constexpr std::uint32_t kMaxCount = 1'000'000, kMaxLength = 1'000'000'000;

struct CountRange {
  std::uint32_t min = 0, max = regex::kNoLimit;

  void raise(std::int64_t value) { min = std::max(min, static_cast<std::uint32_t>(value)); }
  void lower(std::int64_t value, std::uint32_t beyond = kMaxCount) {
    if (value < beyond) max = std::min(max, static_cast<std::uint32_t>(value));
  }
};

// A schema and the scope in which its keywords apply.
struct Applied {
  const json::Value* schema;
  const Scope* scope;

  const json::Value* find(std::string_view key) const { return schema->find(key); }
};

struct Constraints {
  std::vector<Applied> schemas;  // in order of appearance; rules of objects and arrays read them
  unsigned types = kAllTypes;
  std::optional<std::vector<const json::Value*>> values;  // from enum and const
  std::vector<const json::Value*> excluded;
  json::NumberRange numbers;
  std::vector<json::Decimal> multiples, not_multiples;
  CountRange length;
  std::vector<const json::Value*> patterns, not_patterns;  // of strings
  std::vector<std::string> formats;
  CountRange items, properties;
  bool unique = false;
};

}  // namespace sluice::grammar::schema
