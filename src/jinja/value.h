// The values of a template: Python's scalars, sequences and mappings, jinja2's undefined, and objects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "jinja/big_integer.h"
#include "jinja/budget.h"

namespace sluice::jinja {

class Value;
class Dict;
class Object;

struct None {};
// Using the value raises an error with this message.
struct Undefined {
  std::shared_ptr<const std::string> message;
};
// Markup is a string that escape() made or safe() marked; joining it escapes the other operand.
struct Text {
  std::shared_ptr<const std::string> bytes;
  bool markup = false;
};
struct Sequence;

enum class Type { undefined, none, boolean, integer, real, text, sequence, dict, object, big_integer };

class Value {
 public:
  Value() : data_(None{}) {}
  Value(None) : data_(None{}) {}
  Value(Undefined value) : data_(std::move(value)) {}
  Value(bool value) : data_(value) {}
  Value(std::int64_t value) : data_(value) {}
  Value(double value) : data_(value) {}
  Value(BigInteger value) : data_(std::move(value)) {}
  Value(Text value) : data_(std::move(value)) {}
  Value(std::string value, bool markup = false)
      : data_(Text{std::make_shared<const std::string>(std::move(value)), markup}) {}
  Value(std::string_view value) : Value(std::string(value)) {}
  Value(const char* value) : Value(std::string(value)) {}
  Value(std::shared_ptr<const Sequence> value) : data_(std::move(value)) {}
  Value(std::shared_ptr<const Dict> value) : data_(std::move(value)) {}
  Value(Object* value) : data_(value) {}

  Type type() const { return static_cast<Type>(data_.index()); }
  bool is_undefined() const { return type() == Type::undefined; }
  bool is_none() const { return type() == Type::none; }
  bool is_boolean() const { return type() == Type::boolean; }
  bool is_integer() const {
    return type() == Type::integer || is_boolean();
  }  // as in Python, a bool is an int
  bool is_big_integer() const { return type() == Type::big_integer; }
  bool is_real() const { return type() == Type::real; }
  bool is_number() const { return is_integer() || is_real(); }
  bool is_text() const { return type() == Type::text; }
  bool is_sequence() const { return type() == Type::sequence; }
  bool is_dict() const { return type() == Type::dict; }
  bool is_object() const { return type() == Type::object; }
  bool is_markup() const { return is_text() && std::get<Text>(data_).markup; }

  const std::string& undefined_message() const { return *std::get<Undefined>(data_).message; }
  bool boolean() const { return std::get<bool>(data_); }
  std::int64_t integer() const { return is_boolean() ? boolean() : std::get<std::int64_t>(data_); }
  const BigInteger& big_integer() const { return std::get<BigInteger>(data_); }
  double real() const { return is_real() ? std::get<double>(data_) : integer(); }
  const std::string& text() const { return *std::get<Text>(data_).bytes; }
  const Sequence& sequence() const { return *std::get<std::shared_ptr<const Sequence>>(data_); }
  const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  Object* object() const { return std::get<Object*>(data_); }

 private:
  std::variant<Undefined, None, bool, std::int64_t, double, Text, std::shared_ptr<const Sequence>,
               std::shared_ptr<const Dict>, Object*, BigInteger>
      data_;
};

using Values = std::vector<Value>;

// Everything with items: the views of a dict and the generators of filters differ from a list only in what
// they allow.
enum class SequenceKind { list, tuple, range, keys, values, items, iterator };

struct Sequence {
  SequenceKind kind = SequenceKind::list;
  Values items;
  int nesting = 1;
  mutable bool consumed = false;  // an iterator yields its items once
  std::string label;              // how a range is printed
};

Value make_sequence(SequenceKind kind, Values items);
inline Value make_list(Values items) {
  return make_sequence(SequenceKind::list, std::move(items));
}
inline Value make_tuple(Values items) {
  return make_sequence(SequenceKind::tuple, std::move(items));
}
inline Value make_iterator(Values items) {
  return make_sequence(SequenceKind::iterator, std::move(items));
}
Value make_range(std::int64_t start, std::int64_t stop, std::int64_t step);
Value make_undefined(std::string message);

bool is_kind(const Value& value, SequenceKind kind);
inline bool is_list(const Value& value) {
  return is_kind(value, SequenceKind::list);
}
inline bool is_tuple(const Value& value) {
  return is_kind(value, SequenceKind::tuple);
}

// A mapping in insertion order. Keys are hashable values compared as Python compares them (1 == 1.0 == True).
class Dict {
 public:
  void set(const Value& key, Value value);
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;

  const std::vector<std::pair<Value, Value>>& entries() const { return entries_; }
  std::size_t size() const { return entries_.size(); }
  int nesting() const { return nesting_; }

 private:
  std::optional<std::size_t> index_of(const Value& key, std::size_t hash) const;

  std::vector<std::pair<Value, Value>> entries_;
  std::unordered_multimap<std::size_t, std::size_t> index_;  // hash -> entry
  int nesting_ = 1;
};

Value make_dict(Dict dict);

// The arguments of a call.
struct Call {
  Values args;
  std::vector<std::pair<std::string, Value>> named;
};

// Functions, macros, loops and namespaces. They may refer to each other in cycles, so a render owns them all,
// and values only point to them.
class Object {
 public:
  virtual ~Object() = default;
  virtual std::string type_name() const = 0;
  virtual std::string repr(Budget& budget) const = 0;
  virtual std::optional<Value> attribute(std::string_view) const { return std::nullopt; }
  virtual bool callable() const { return false; }
  virtual Value call(const Call&) { fault("'{}' object is not callable", type_name()); }
};

class Namespace final : public Object {
 public:
  std::string type_name() const override { return "Namespace"; }
  std::string repr(Budget& budget) const override;
  std::optional<Value> attribute(std::string_view name) const override;
  void set(std::string_view name, Value value);

 private:
  Dict attributes_;
};

// Whether it can be a dict key.
bool is_hashable(const Value& value);
bool truth(const Value& value);
std::string type_name(const Value& value);
// Raises jinja2's UndefinedError if the value is undefined.
void require_defined(const Value& value);

}  // namespace sluice::jinja
