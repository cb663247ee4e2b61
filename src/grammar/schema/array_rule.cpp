#include "grammar/schema/array_rule.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace sluice::grammar {
namespace {

constexpr std::size_t kMaxArrayNodes = 200'000;

// The schemas of the first items, and that of the others.
struct ItemSchemas {
  const JsonValue* first = nullptr;
  const JsonValue* others = nullptr;
};

ItemSchemas item_schemas(const JsonValue& schema) {
  ItemSchemas result;
  const JsonValue* items = schema.find("items");
  result.first = schema.find("prefixItems");
  if (items != nullptr && items->is_array()) {  // drafts before 2020-12
    result.first = items;
    result.others = schema.find("additionalItems");
  } else {
    result.others = items;
  }
  return result;
}

}  // namespace

std::size_t SchemaCompiler::prefix_items(const Constraints& constraints) const {
  std::size_t count = 0;
  for (const JsonValue* schema : constraints.schemas)
    if (const JsonValue* first = item_schemas(*schema).first) count = std::max(count, first->items.size());
  return count;
}

Demands SchemaCompiler::item_demands(const Constraints& constraints, std::size_t index) {
  Demands demands;
  for (const JsonValue* schema : constraints.schemas) {
    const ItemSchemas items = item_schemas(*schema);
    if (items.first != nullptr && index < items.first->items.size()) {
      demand(demands, items.first->items[index]);
    } else if (items.others != nullptr) {
      demand(demands, *items.others);
    }
  }
  return demands;
}

ArrayRule::ArrayRule(SchemaCompiler& compiler, const Constraints& constraints, RuleId rule)
    : compiler_(compiler), constraints_(constraints), rule_(rule) {}

ArrayRule::Contains ArrayRule::find_contains() {
  Contains result;
  for (const JsonValue* schema : constraints_.schemas) {
    const JsonValue* contains = schema->find("contains");
    if (contains == nullptr) continue;
    if (result.schema != nullptr)
      compiler_.unsupported(*schema, "contains", "more than one for the same array is not supported");
    result.schema = contains;
    result.min = 1;
    const auto count = [&](const char* key, std::uint32_t& value) {
      const JsonValue* bound = schema->find(key);
      if (bound == nullptr) return;
      const std::int64_t number = bound->is_number() ? bound->number.as_count(kMaxCount) : -1;
      if (number < 0) compiler_.wrong(*schema, key, "expected a whole number that is not negative");
      value = static_cast<std::uint32_t>(number);
    };
    count("minContains", result.min);
    count("maxContains", result.max);
  }
  return result;
}

void ArrayRule::write() {
  if (constraints_.items.min > constraints_.items.max) return;
  const Contains contains = find_contains();
  if (constraints_.unique && constraints_.items.max > 1) {
    if (contains.schema != nullptr)
      compiler_.unsupported(*constraints_.schemas[0], "uniqueItems", "not supported together with contains");
    return write_unique();
  }
  if (contains.min > contains.max) return;
  write_items(contains);
}

void ArrayRule::write_items(const Contains& contains) {
  Rules& rules = compiler_.rules_;
  const JsonTokens& tokens = compiler_.tokens_;
  const CountRange& count = constraints_.items;
  const auto first = static_cast<std::uint32_t>(compiler_.prefix_items(constraints_));
  const bool bounded = count.max != kNoLimit;
  // Without a bound, positions from the last one on are alike.
  const std::uint32_t last = bounded ? count.max : std::max({first, count.min, 1u});
  const std::uint32_t layers =
      contains.schema == nullptr ? 1 : 1 + (contains.max == kNoLimit ? contains.min : contains.max);
  if ((std::size_t{last} + 1) * layers > kMaxArrayNodes)
    compiler_.unsupported(*constraints_.schemas[0], bounded ? "maxItems" : "minItems",
                          "so large a number is not supported");

  const NodeId end = rules.add_node(rule_), opened = rules.add_node(rule_);
  rules.set_final(end);
  rules.add_lexeme(rules.start(rule_), tokens.open_array, opened);
  // By the number of complete items, and by how many of them are what the array must contain.
  std::vector<NodeId> after = {opened};
  for (std::uint32_t index = 0; index <= last; ++index) {
    compiler_.check_time();
    std::vector<NodeId> next = after;
    if (index < last) {
      next.clear();
      for (std::uint32_t found = 0; found < layers; ++found) next.push_back(rules.add_node(rule_));
    }
    for (std::uint32_t found = 0; found < after.size(); ++found) {
      if (index >= count.min && found >= contains.min)
        rules.add_lexeme(after[found], index == 0 ? tokens.close_empty_array : tokens.close_array, end);
      if (bounded && index == last) continue;
      NodeId item = opened;
      if (index > 0) rules.add_lexeme(after[found], tokens.comma, item = rules.add_node(rule_));
      write_item(item, index, contains, found, next);
    }
    after = std::move(next);
  }
}

void ArrayRule::write_item(NodeId from, std::uint32_t index, const Contains& contains, std::uint32_t found,
                           const std::vector<NodeId>& next) {
  const Demands demands = compiler_.item_demands(constraints_, index);
  if (contains.schema == nullptr) return compiler_.add_value(from, demands, next[0]);
  Demands with = demands, without = demands;
  compiler_.demand(with, *contains.schema);
  if (contains.max != kNoLimit) compiler_.demand(without, compiler_.negation(*contains.schema));
  if (found + 1 < next.size()) compiler_.add_value(from, with, next[found + 1]);
  compiler_.add_value(from, without, next[found]);
}

// Items without repetition are written where their values can be counted: a node for each set of used ones.
void ArrayRule::write_unique() {
  constexpr std::size_t kMaxValues = 9;
  const JsonValue& schema = *constraints_.schemas[0];
  if (compiler_.prefix_items(constraints_) != 0)
    compiler_.unsupported(schema, "uniqueItems",
                          "only supported where all items have one small list of values");
  std::vector<const JsonValue*> values;
  static const JsonValue kBooleans[] = {JsonValue::of(false), JsonValue::of(true)};
  static const JsonValue kNullValue;
  const auto add = [&](const JsonValue& value) {
    if (std::ranges::none_of(values, [&](const JsonValue* other) { return *other == value; }))
      values.push_back(&value);
  };
  for (const Demands& way : compiler_.alternatives(compiler_.item_demands(constraints_, 0))) {
    const Constraints item = compiler_.merge(way);
    if (item.values) {
      for (const JsonValue* value : *item.values)
        if (compiler_.admits(item, *value)) add(*value);
      continue;
    }
    if ((item.types & ~unsigned{kBoolean | kNull}) != 0)
      compiler_.unsupported(schema, "uniqueItems",
                            "only supported where all items have one small list of values");
    if ((item.types & kNull) != 0) add(kNullValue);
    if ((item.types & kBoolean) != 0)
      for (const JsonValue& value : kBooleans) add(value);
  }
  if (values.size() > kMaxValues)
    compiler_.unsupported(schema, "uniqueItems",
                          fmt::format("only supported for at most {} values", kMaxValues));

  Rules& rules = compiler_.rules_;
  const JsonTokens& tokens = compiler_.tokens_;
  const CountRange& count = constraints_.items;
  const NodeId end = rules.add_node(rule_), opened = rules.add_node(rule_);
  rules.set_final(end);
  rules.add_lexeme(rules.start(rule_), tokens.open_array, opened);
  if (count.min == 0) rules.add_lexeme(opened, tokens.close_empty_array, end);
  std::vector<NodeId> used;  // by the set of used values
  for (std::size_t set = 0; set < std::size_t{1} << values.size(); ++set)
    used.push_back(set == 0 ? opened : rules.add_node(rule_));
  for (std::size_t set = 0; set < used.size(); ++set) {
    const auto size = static_cast<std::uint32_t>(std::popcount(set));
    NodeId item = opened;
    if (set != 0) {
      if (size >= count.min) rules.add_lexeme(used[set], tokens.close_array, end);
      item = rules.add_node(rule_);
      rules.add_lexeme(used[set], tokens.comma, item);
    }
    if (size >= count.max) continue;
    for (std::size_t i = 0; i < values.size(); ++i)
      if ((set >> i & 1) == 0)
        rules.add_lexeme(item, compiler_.value_text(*values[i]), used[set | std::size_t{1} << i]);
  }
}

}  // namespace sluice::grammar
