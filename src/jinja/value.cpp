#include "jinja/value.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "jinja/operators.h"
#include "jinja/repr.h"

namespace sluice::jinja {
namespace {

constexpr int kMaxKeyParts = 1000;

int nesting_of(const Value& value) {
  if (value.is_sequence()) return value.sequence().nesting;
  if (value.is_dict()) return value.dict().nesting();
  return 0;
}

int nesting_above(int current, const Value& item) {
  int nesting = std::max(current, nesting_of(item) + 1);
  if (nesting > kMaxNesting) fault("containers nest deeper than {} levels", kMaxNesting);
  return nesting;
}

// Equal keys have equal hashes: numbers through double, whose collisions equality resolves. Tuples can share
// parts, so a small one may expand without end; `parts` limits the walk.
std::size_t hash(const Value& key, int& parts) {
  if (--parts < 0) fault("a dict key has more than {} parts", kMaxKeyParts);
  switch (key.type()) {
    case Type::none:
      return 0x9E3779B9;
    case Type::undefined:
      return 0x7F4A7C15;
    case Type::boolean:
    case Type::integer:
    case Type::real:
      return std::hash<double>()(key.real());
    case Type::big_integer:
      return std::hash<double>()(to_double(key.big_integer()));
    case Type::text:
      return std::hash<std::string>()(key.text());
    case Type::object:
      return std::hash<const void*>()(key.object());
    case Type::sequence:
      if (is_tuple(key)) {
        std::size_t result = 17;
        for (const Value& item : key.sequence().items) result = result * 31 + hash(item, parts);
        return result;
      }
      break;
    case Type::dict:
      break;
  }
  fault("unhashable type: '{}'", type_name(key));
}

std::size_t hash(const Value& key) {
  int parts = kMaxKeyParts;
  return hash(key, parts);
}

// Keys are flat or short tuples, so comparing them needs no budget.
bool same_key(const Value& a, const Value& b) {
  Budget budget{Limits{}};
  return equal(budget, a, b);
}

}  // namespace

Value make_sequence(SequenceKind kind, Values items) {
  auto sequence = std::make_shared<Sequence>();
  for (const Value& item : items) sequence->nesting = nesting_above(sequence->nesting, item);
  sequence->kind = kind;
  sequence->items = std::move(items);
  return Value(std::shared_ptr<const Sequence>(std::move(sequence)));
}

Value make_range(std::int64_t start, std::int64_t stop, std::int64_t step) {
  constexpr std::int64_t kMaxRange = 100'000;
  if (step == 0) fault("range() arg 3 must not be zero");
  auto sequence = std::make_shared<Sequence>();
  sequence->kind = SequenceKind::range;
  sequence->label = fmt::format("range({}, {}{})", start, stop, step == 1 ? "" : fmt::format(", {}", step));
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (sequence->items.size() == kMaxRange)
      fault("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", kMaxRange);
    sequence->items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return Value(std::shared_ptr<const Sequence>(std::move(sequence)));
}

Value make_undefined(std::string message) {
  return Undefined{std::make_shared<const std::string>(std::move(message))};
}

Value make_dict(Dict dict) {
  return Value(std::make_shared<const Dict>(std::move(dict)));
}

bool is_kind(const Value& value, SequenceKind kind) {
  return value.is_sequence() && value.sequence().kind == kind;
}

std::optional<std::size_t> Dict::index_of(const Value& key, std::size_t hash) const {
  auto [begin, end] = index_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (same_key(entries_[it->second].first, key)) return it->second;
  return std::nullopt;
}

void Dict::set(const Value& key, Value value) {
  nesting_ = nesting_above(nesting_above(nesting_, value), key);
  std::size_t key_hash = hash(key);
  if (auto index = index_of(key, key_hash)) {
    entries_[*index].second = std::move(value);
    return;
  }
  index_.emplace(key_hash, entries_.size());
  entries_.emplace_back(key, std::move(value));
}

const Value* Dict::find(const Value& key) const {
  auto index = index_of(key, hash(key));
  return index ? &entries_[*index].second : nullptr;
}

const Value* Dict::find(std::string_view key) const {
  auto [begin, end] = index_.equal_range(std::hash<std::string_view>()(key));
  for (auto it = begin; it != end; ++it) {
    const auto& [name, value] = entries_[it->second];
    if (name.is_text() && name.text() == key) return &value;
  }
  return nullptr;
}

std::string Namespace::repr(Budget& budget) const {
  return "<Namespace " + jinja::repr(budget, make_dict(attributes_)) + ">";
}

std::optional<Value> Namespace::attribute(std::string_view name) const {
  const Value* value = attributes_.find(name);
  return value ? std::optional<Value>(*value) : std::nullopt;
}

void Namespace::set(std::string_view name, Value value) {
  if (!name.empty() && name[0] == '_') {
    fault(
        "Chat templates cannot store underscore-prefixed attributes on a namespace, but got '{}'. Please "
        "rename "
        "the attribute.",
        name);
  }
  attributes_.set(Value(name), std::move(value));
}

bool is_hashable(const Value& value) {
  if (!is_tuple(value)) return !value.is_dict() && !value.is_sequence();
  const Values& items = value.sequence().items;
  return std::all_of(items.begin(), items.end(), is_hashable);
}

bool truth(const Value& value) {
  switch (value.type()) {
    case Type::undefined:
    case Type::none:
      return false;
    case Type::boolean:
    case Type::integer:
      return value.integer() != 0;
    case Type::real:
      return value.real() != 0;
    case Type::text:
      return !value.text().empty();
    case Type::sequence:
      return is_kind(value, SequenceKind::iterator) || !value.sequence().items.empty();
    case Type::dict:
      return value.dict().size() > 0;
    case Type::object:
    case Type::big_integer:
      return true;
  }
  return true;
}

std::string type_name(const Value& value) {
  constexpr const char* kSequences[] = {"list",        "tuple",      "range",    "dict_keys",
                                        "dict_values", "dict_items", "generator"};
  switch (value.type()) {
    case Type::undefined:
      return "Undefined";
    case Type::none:
      return "NoneType";
    case Type::boolean:
      return "bool";
    case Type::integer:
    case Type::big_integer:
      return "int";
    case Type::real:
      return "float";
    case Type::text:
      return value.is_markup() ? "Markup" : "str";
    case Type::sequence:
      return kSequences[static_cast<int>(value.sequence().kind)];
    case Type::dict:
      return "dict";
    case Type::object:
      return value.object()->type_name();
  }
  return "object";
}

void require_defined(const Value& value) {
  if (value.is_undefined()) throw Fault(value.undefined_message());
}

}  // namespace sluice::jinja
