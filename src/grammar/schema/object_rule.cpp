#include "grammar/schema/object_rule.h"

#include <algorithm>

#include "base/error.h"
#include "grammar/json/string.h"

namespace sluice::grammar {

std::vector<std::string> SchemaCompiler::property_names(const Constraints& constraints) const {
  std::vector<std::string> names;
  std::unordered_map<std::string_view, bool> known;
  const auto add = [&](const std::string& name) {
    if (known.try_emplace(name, true).second) names.push_back(name);
  };
  for (const JsonValue* schema : constraints.schemas)
    if (const JsonValue* properties = schema->find("properties"))
      for (const auto& [name, unused] : properties->members) add(name);
  for (const JsonValue* schema : constraints.schemas)
    if (const JsonValue* required = schema->find("required"))
      for (const JsonValue& name : required->items) add(name.string);
  return names;
}

std::vector<std::string> SchemaCompiler::required_names(const Constraints& constraints) const {
  std::vector<std::string> names;
  for (const JsonValue* schema : constraints.schemas)
    if (const JsonValue* required = schema->find("required"))
      for (const JsonValue& name : required->items)
        if (std::ranges::find(names, name.string) == names.end()) names.push_back(name.string);
  return names;
}

Demands SchemaCompiler::property_demands(const Constraints& constraints, const std::string& name) {
  Demands demands;
  for (const JsonValue* schema : constraints.schemas) {
    bool known = false;
    if (const JsonValue* properties = schema->find("properties"))
      if (const JsonValue* own = properties->find(name)) {
        demand(demands, *own);
        known = true;
      }
    if (const JsonValue* patterns = schema->find("patternProperties"))
      for (const auto& [pattern, part] : patterns->members)
        if (lexer_.matches(pattern_regex(*schema, "patternProperties", pattern), json_escaped(name))) {
          demand(demands, part);
          known = true;
        }
    if (known) continue;
    for (const char* key : {"additionalProperties", "unevaluatedProperties"})
      if (const JsonValue* other = schema->find(key)) demand(demands, *other);
  }
  return demands;
}

// The names that propertyNames allows.
RegexId SchemaCompiler::name_regex(const Constraints& constraints) {
  std::vector<RegexId> conditions = {arena_.repeat(any_char_, 0)};
  for (const JsonValue* schema : constraints.schemas) {
    const JsonValue* names = schema->find("propertyNames");
    if (names == nullptr) continue;
    std::vector<RegexId> choices;
    for (const Demands& way : alternatives(demands_of(*names))) {
      Constraints merged = merge(way);
      if ((merged.types & kString) == 0) continue;
      if (merged.values) {
        std::vector<std::string> texts;
        for (const JsonValue* value : *merged.values)
          if (value->is_string() && admits(merged, *value)) texts.push_back(json_escaped(value->string));
        choices.push_back(arena_.literals(std::move(texts)));
      } else {
        choices.push_back(string_content(merged));
      }
    }
    conditions.push_back(arena_.any_of(std::move(choices)));
  }
  if (conditions.size() > 1) conditions.erase(conditions.begin());
  return arena_.all_of(std::move(conditions));
}

ObjectRule::ObjectRule(SchemaCompiler& compiler, const Constraints& constraints, RuleId rule)
    : compiler_(compiler), constraints_(constraints), rule_(rule) {}

// False if a required property cannot be there.
bool ObjectRule::collect_properties() {
  const std::vector<std::string> required = compiler_.required_names(constraints_);
  const RegexId names = compiler_.name_regex(constraints_);
  for (const std::string& name : compiler_.property_names(constraints_)) {
    Property property{name, compiler_.property_demands(constraints_, name),
                      std::ranges::find(required, name) != required.end()};
    const bool possible =
        compiler_.types_of(property.demands) != 0 && compiler_.lexer_.matches(names, json_escaped(name));
    if (!possible && property.required) return false;
    if (possible) properties_.push_back(std::move(property));
  }
  return true;
}

Demands ObjectRule::region_demands(const std::vector<bool>& matched) {
  Demands demands;
  for (const JsonValue* schema : constraints_.schemas) {
    bool known = false;
    for (std::size_t i = 0; i < patterns_.size(); ++i)
      if (matched[i] && patterns_[i].owner == schema) {
        compiler_.demand(demands, *patterns_[i].schema);
        known = true;
      }
    if (known) continue;
    for (const char* key : {"additionalProperties", "unevaluatedProperties"})
      if (const JsonValue* other = schema->find(key)) compiler_.demand(demands, *other);
  }
  return demands;
}

// Names that match a pattern and names that do not are different regions.
void ObjectRule::split_region(RegexId names, std::size_t next, std::vector<bool>& matched) {
  compiler_.check_time();
  if (!compiler_.lexer_.alive(names)) return;
  if (next == patterns_.size()) {
    Demands demands = region_demands(matched);
    if (compiler_.types_of(demands) != 0) regions_.push_back({names, std::move(demands)});
    return;
  }
  RegexArena& arena = compiler_.arena_;
  matched[next] = true;
  split_region(arena.all_of({names, patterns_[next].regex}), next + 1, matched);
  matched[next] = false;
  split_region(arena.all_of({names, arena.complement(patterns_[next].regex)}), next + 1, matched);
}

void ObjectRule::collect_regions() {
  constexpr std::size_t kMaxPatterns = 10;
  RegexArena& arena = compiler_.arena_;
  std::vector<std::string> known;
  for (const std::string& name : compiler_.property_names(constraints_)) known.push_back(json_escaped(name));
  for (const JsonValue* schema : constraints_.schemas)
    if (const JsonValue* patterns = schema->find("patternProperties"))
      for (const auto& [pattern, part] : patterns->members)
        patterns_.push_back({schema, compiler_.pattern_regex(*schema, "patternProperties", pattern), &part});
  if (patterns_.size() > kMaxPatterns)
    compiler_.unsupported(
        *patterns_[0].owner, "patternProperties",
        fmt::format("more than {} patterns for one object are not supported", kMaxPatterns));
  RegexId names = compiler_.name_regex(constraints_);
  if (!known.empty()) names = arena.all_of({names, arena.complement(arena.literals(std::move(known)))});
  std::vector<bool> matched(patterns_.size(), false);
  if (compiler_.types_of(region_demands(matched)) == 0 && patterns_.empty()) return;
  split_region(names, 0, matched);
}

void ObjectRule::write() {
  constexpr std::size_t kMaxNodes = 200'000;
  const CountRange& count = constraints_.properties;
  if (count.min > count.max || !collect_properties()) return;
  collect_regions();
  // Properties are counted only as far as the bounds need it.
  const std::uint32_t layers = 1 + (count.max == kNoLimit ? count.min : count.max);
  if (layers * (properties_.size() + 1) > kMaxNodes)
    compiler_.unsupported(*constraints_.schemas[0], count.max == kNoLimit ? "minProperties" : "maxProperties",
                          "so large a number is not supported");
  write_layers(layers);
}

void ObjectRule::write_layers(std::uint32_t layers) {
  Rules& rules = compiler_.rules_;
  RegexArena& arena = compiler_.arena_;
  const JsonTokens& tokens = compiler_.tokens_;
  const CountRange& count = constraints_.properties;
  const auto size = static_cast<std::uint32_t>(properties_.size());
  const NodeId end = rules.add_node(rule_);
  rules.set_final(end);
  std::vector<RegexId> keys;
  for (const Property& property : properties_)
    keys.push_back(arena.concat(arena.literal("\"" + json_escaped(property.name) + "\""), tokens.colon));
  std::uint32_t last_required = 0;  // one past it
  for (std::uint32_t i = 0; i < size; ++i)
    if (properties_[i].required) last_required = i + 1;

  // Before a name, of property i or a later one, and after a complete value; by the number of properties so
  // far.
  const NodeId first = rules.add_node(rule_);
  for (std::uint32_t more = 1; more < 2 * layers * (size + 1); ++more) rules.add_node(rule_);
  const auto node = [&](bool done, std::uint32_t layer, std::uint32_t i) {
    return first + ((done ? layers : 0) + layer) * (size + 1) + i;
  };
  const NodeId opened = rules.add_node(rule_);
  rules.add_lexeme(rules.start(rule_), tokens.open_object, opened);
  if (last_required == 0 && count.min == 0) rules.add_lexeme(opened, tokens.close_empty_object, end);
  if (count.max > 0) rules.add_skip(opened, node(false, 0, 0));
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    if (count.max != kNoLimit && layer >= count.max && layer > 0) {
      for (std::uint32_t i = last_required; i <= size; ++i)
        rules.add_lexeme(node(true, layer, i), tokens.close_object, end);
      continue;
    }
    const std::uint32_t next = std::min(layer + 1, layers - 1);
    for (std::uint32_t i = 0; i <= size; ++i) {
      const NodeId name = node(false, layer, i), done = node(true, layer, i);
      if (i < size) {
        const NodeId colon = rules.add_node(rule_);
        rules.add_lexeme(name, keys[i], colon);
        compiler_.add_value(colon, properties_[i].demands, node(true, next, i + 1));
        if (!properties_[i].required) rules.add_skip(name, node(false, layer, i + 1));
      } else {
        for (const Region& region : regions_) {
          const NodeId named = rules.add_node(rule_), colon = rules.add_node(rule_);
          rules.add_lexeme(name, json_quoted(arena, region.names), named);
          rules.add_lexeme(named, tokens.colon, colon);
          compiler_.add_value(colon, region.demands, node(true, next, size));
        }
      }
      // With no bound above, the last layer means "at least so many".
      const bool enough = layer >= count.min;
      if (i >= last_required && enough) rules.add_lexeme(done, tokens.close_object, end);
      rules.add_lexeme(done, tokens.comma, name);
    }
  }
}

}  // namespace sluice::grammar
