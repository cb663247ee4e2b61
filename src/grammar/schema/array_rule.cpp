#include "grammar/schema/array_rule.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace sluice::grammar::schema {
namespace {

constexpr std::size_t kMaxArrayNodes = 200'000;

// The schemas of the first items, and that of the others.
struct ItemSchemas {
  const json::Value* first = nullptr;
  const json::Value* others = nullptr;
};

ItemSchemas item_schemas(const json::Value& schema) {
  ItemSchemas result;
  const json::Value* items = schema.find("items");
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

std::size_t Compiler::prefix_items(const Constraints& constraints) const {
  std::size_t count = 0;
  for (const Applied& at : constraints.schemas)
    if (const json::Value* first = item_schemas(*at.schema).first)
      count = std::max(count, first->items.size());
  return count;
}

Demands Compiler::item_demands(const Constraints& constraints, std::size_t index, std::uint32_t contained) {
  Demands demands;
  for (const Applied& at : constraints.schemas) {
    const ItemSchemas items = item_schemas(*at.schema);
    if (items.first != nullptr && index < items.first->items.size()) {
      demand_part(demands, at, items.first->items[index]);
    } else if (items.others != nullptr) {
      demand_part(demands, at, *items.others);
    }
  }
  demand_unevaluated_items(demands, constraints, index, contained);
  return demands;
}

void Compiler::demand_unevaluated_items(Demands& demands, const Constraints& constraints, std::size_t index,
                                        std::uint32_t contained) {
  const auto evaluates = [&](const Applied& by, std::uint32_t bit) {
    const ItemSchemas items = item_schemas(*by.schema);
    return items.others != nullptr || (items.first != nullptr && index < items.first->items.size()) ||
           (by.find("contains") != nullptr && document_.contains_evaluates() && (contained >> bit & 1) != 0);
  };
  for (const Applied& at : constraints.schemas) {
    const json::Value* others = at.find("unevaluatedItems");
    if (others == nullptr || !Scopes::collects(at.scope)) continue;
    bool evaluated = false;
    std::uint32_t bit = 0;  // of the next `contains` schema
    for (const Applied& by : constraints.schemas) {
      evaluated |= Scopes::tells(by.scope, at.scope) &&
                   (evaluates(by, bit) || (by.schema != at.schema && by.find("unevaluatedItems") != nullptr));
      if (by.find("contains") != nullptr && bit < 31) ++bit;
    }
    if (!evaluated) demand_part(demands, at, *others);
  }
}

std::vector<Compiler::Contains> Compiler::find_contains(const Constraints& constraints) {
  constexpr std::size_t kMaxContains = 4;
  std::vector<Contains> result;
  for (const Applied& at : constraints.schemas) {
    const json::Value* schema = at.find("contains");
    if (schema == nullptr) continue;
    if (result.size() == kMaxContains)
      unsupported(*at.schema, "contains",
                  fmt::format("more than {} for the same array are not supported", kMaxContains));
    result.push_back(read_contains(at, *schema));
  }
  return result;
}

Compiler::Contains Compiler::read_contains(const Applied& at, const json::Value& schema) const {
  Contains contains{at, &schema};
  const auto count = [&](const char* key, std::uint32_t& value) {
    const json::Value* bound = at.find(key);
    if (bound == nullptr) return;
    const std::int64_t number = bound->is_number() ? bound->number.as_count(kMaxCount) : -1;
    if (number < 0) wrong(*at.schema, key, "expected a whole number that is not negative");
    value = number;
  };
  count("minContains", contains.min);
  count("maxContains", contains.max);
  return contains;
}

ArrayRule::ArrayRule(Compiler& compiler, const Constraints& constraints, RuleId rule)
    : compiler_(compiler), constraints_(constraints), rule_(rule) {
  contains_ = compiler.find_contains(constraints);
  for (const Applied& at : constraints.schemas) unevaluated_ |= at.find("unevaluatedItems") != nullptr;
}

std::uint32_t ArrayRule::count_layers() const {
  std::size_t layers = 1;
  for (const auto& contains : contains_)
    layers = std::min(layers * (std::size_t{last_count(contains)} + 1), kMaxArrayNodes);
  return layers;
}

bool ArrayRule::enough(std::uint32_t found) const {
  for (const auto& contains : contains_) {
    if (found % (last_count(contains) + 1) < contains.min) return false;
    found /= last_count(contains) + 1;
  }
  return true;
}

std::optional<std::uint32_t> ArrayRule::count_item(std::uint32_t found, std::uint32_t contained) const {
  std::uint32_t next = 0, scale = 1;
  for (const auto& contains : contains_) {
    const std::uint32_t last = last_count(contains), before = found % (last + 1);
    const bool counted = (contained & 1) != 0;
    if (counted && before == last) {
      // Above the maximum nothing may follow; above what is enough it matters only for evaluation.
      if (contains.max != regex::kNoLimit || !unevaluated_) return std::nullopt;
    }
    next += scale * std::min(before + (counted ? 1 : 0), last);
    scale *= last + 1;
    found /= last + 1;
    contained >>= 1;
  }
  return next;
}

void ArrayRule::write() {
  if (constraints_.items.min > constraints_.items.max) return;
  for (const auto& contains : contains_)
    if (contains.min > contains.max) return;
  if (constraints_.unique && constraints_.items.max > 1) {
    if (!contains_.empty())
      compiler_.unsupported(constraints_, "uniqueItems", "not supported together with contains");
    return write_unique();
  }
  write_items();
}

void ArrayRule::write_items() {
  Rules& rules = compiler_.rules_;
  const JsonTokens& tokens = compiler_.tokens_;
  const CountRange& count = constraints_.items;
  const std::uint32_t first = compiler_.prefix_items(constraints_);
  const bool bounded = count.max != regex::kNoLimit;
  // Without a maximum, positions from the last one on are equivalent.
  const std::uint32_t last = bounded ? count.max : std::max({first, count.min, 1u});
  const std::uint32_t layers = count_layers();
  if ((std::size_t{last} + 1) * layers > kMaxArrayNodes)
    compiler_.unsupported(constraints_,
                          bounded         ? "maxItems"
                          : last > layers ? "minItems"
                                          : "contains",
                          "so large a number is not supported");

  const NodeId end = rules.add_node(rule_), opened = rules.add_node(rule_);
  rules.set_final(end);
  rules.add_lexeme(rules.start(rule_), tokens.open_array, opened);
  // By the number of complete items, and by how many of them match `contains`.
  std::vector<NodeId> after = {opened};
  for (std::uint32_t index = 0; index <= last; ++index) {
    compiler_.check_time();
    std::vector<NodeId> next = after;
    if (index < last) {
      next.clear();
      for (std::uint32_t found = 0; found < layers; ++found) next.push_back(rules.add_node(rule_));
    }
    for (std::uint32_t found = 0; found < after.size(); ++found) {
      if (index >= count.min && enough(found))
        rules.add_lexeme(after[found], index == 0 ? tokens.close_empty_array : tokens.close_array, end);
      if (bounded && index == last) continue;
      NodeId item = opened;
      if (index > 0) rules.add_lexeme(after[found], tokens.comma, item = rules.add_node(rule_));
      write_item(item, index, found, next);
    }
    after = std::move(next);
  }
}

// For each set of `contains` schemas that the item may match. That it does not match the others matters only
// for those with a maximum.
void ArrayRule::write_item(NodeId from, std::uint32_t index, std::uint32_t found,
                           const std::vector<NodeId>& next) {
  for (std::uint32_t contained = 0; contained < 1u << contains_.size(); ++contained) {
    const std::optional<std::uint32_t> count = count_item(found, contained);
    if (!count) continue;
    Demands demands = compiler_.item_demands(constraints_, index, contained);
    for (std::size_t i = 0; i < contains_.size(); ++i) {
      const Compiler::Contains& contains = contains_[i];
      if ((contained >> i & 1) != 0) {
        compiler_.demand_part(demands, contains.by, *contains.schema);
      } else if (contains.max != regex::kNoLimit) {
        compiler_.demand_part(demands, contains.by, compiler_.negation(*contains.schema));
      }
    }
    compiler_.add_value(from, demands, next[*count]);
  }
}

// Items that must be unique are supported if their values can be listed: one node per set of used values.
void ArrayRule::write_unique() {
  constexpr std::size_t kMaxValues = 9;
  if (compiler_.prefix_items(constraints_) != 0)
    compiler_.unsupported(constraints_, "uniqueItems",
                          "only supported where all items have one small list of values");
  std::vector<const json::Value*> values;
  static const json::Value kBooleans[] = {json::Value::of(false), json::Value::of(true)};
  static const json::Value kNullValue;
  const auto add = [&](const json::Value& value) {
    if (values.size() > kMaxValues) return;
    if (std::ranges::none_of(values, [&](const json::Value* other) { return *other == value; }))
      values.push_back(&value);
  };
  for (const Demands& way : compiler_.alternatives(compiler_.item_demands(constraints_, 0, 0))) {
    const Constraints item = compiler_.merge(way);
    if (item.values) {
      for (const json::Value* value : *item.values)
        if (compiler_.admits(item, *value)) add(*value);
      continue;
    }
    if ((item.types & ~unsigned{kBoolean | kNull}) != 0)
      compiler_.unsupported(constraints_, "uniqueItems",
                            "only supported where all items have one small list of values");
    if ((item.types & kNull) != 0) add(kNullValue);
    if ((item.types & kBoolean) != 0)
      for (const json::Value& value : kBooleans) add(value);
  }
  if (values.size() > kMaxValues)
    compiler_.unsupported(constraints_, "uniqueItems",
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
    const std::uint32_t size = std::popcount(set);
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

}  // namespace sluice::grammar::schema
