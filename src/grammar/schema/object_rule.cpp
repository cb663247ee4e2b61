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
  for (const Applied& at : constraints.schemas)
    if (const JsonValue* properties = at.find("properties"))
      for (const auto& [name, unused] : properties->members) add(name);
  for (const Applied& at : constraints.schemas)
    if (const JsonValue* required = at.find("required"))
      for (const JsonValue& name : required->items) add(name.string);
  return names;
}

std::vector<std::string> SchemaCompiler::required_names(const Constraints& constraints) const {
  std::vector<std::string> names;
  for (const Applied& at : constraints.schemas)
    if (const JsonValue* required = at.find("required"))
      for (const JsonValue& name : required->items)
        if (std::ranges::find(names, name.string) == names.end()) names.push_back(name.string);
  return names;
}

Demands SchemaCompiler::property_demands(const Constraints& constraints, const std::string& name) {
  Demands demands;
  std::vector<bool> named(constraints.schemas.size(), false);
  for (std::size_t i = 0; i < constraints.schemas.size(); ++i) {
    const Applied& at = constraints.schemas[i];
    if (const JsonValue* properties = at.find("properties"))
      if (const JsonValue* own = properties->find(name)) {
        demand_part(demands, at, *own);
        named[i] = true;
      }
    if (const JsonValue* patterns = at.find("patternProperties"))
      for (const auto& [pattern, part] : patterns->members)
        if (lexer_.matches(pattern_regex(*at.schema, "patternProperties", pattern), json_escaped(name))) {
          demand_part(demands, at, part);
          named[i] = true;
        }
  }
  demand_others(demands, constraints, named);
  return demands;
}

void SchemaCompiler::demand_others(Demands& demands, const Constraints& constraints,
                                   const std::vector<bool>& named) {
  const std::vector<Applied>& schemas = constraints.schemas;
  for (std::size_t i = 0; i < schemas.size(); ++i)
    if (const JsonValue* others = schemas[i].find("additionalProperties"); others != nullptr && !named[i])
      demand_part(demands, schemas[i], *others);
  for (const Applied& at : schemas) {
    const JsonValue* others = at.find("unevaluatedProperties");
    if (others == nullptr || !Scopes::collects(at.scope)) continue;
    bool evaluated = false;
    for (std::size_t i = 0; i < schemas.size() && !evaluated; ++i)
      evaluated = Scopes::tells(schemas[i].scope, at.scope) &&
                  (named[i] || schemas[i].find("additionalProperties") != nullptr ||
                   (schemas[i].schema != at.schema && schemas[i].find("unevaluatedProperties") != nullptr));
    if (!evaluated) demand_part(demands, at, *others);
  }
}

// The names that fulfil a schema.
RegexId SchemaCompiler::name_regex(const JsonValue& schema, const Scope* scope) {
  std::vector<RegexId> choices;
  for (const Demands& way : alternatives(demands_of(schema, scope))) {
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
  return arena_.any_of(std::move(choices));
}

// The names that propertyNames allows.
RegexId SchemaCompiler::name_regex(const Constraints& constraints) {
  std::vector<RegexId> conditions;
  for (const Applied& at : constraints.schemas)
    if (const JsonValue* names = at.find("propertyNames"))
      conditions.push_back(name_regex(*names, scopes_.inner(at.scope)));
  if (conditions.empty()) conditions.push_back(arena_.repeat(any_char_, 0));
  return arena_.all_of(std::move(conditions));
}

std::vector<SchemaCompiler::SomeProperty> SchemaCompiler::find_some(const Constraints& constraints) {
  constexpr std::size_t kMaxSome = 3;
  std::vector<SomeProperty> result;
  for (const Applied& at : constraints.schemas) {
    const JsonValue* some = at.find("$some-property");
    if (some == nullptr) continue;
    if (result.size() == kMaxSome)
      unsupported(*at.schema, "not",
                  fmt::format("more than {} negated keywords for properties of one object are not supported",
                              kMaxSome));
    result.push_back({at, name_regex(*some->find("names"), scopes_.inner(at.scope)), some->find("value")});
  }
  return result;
}

ObjectRule::ObjectRule(SchemaCompiler& compiler, const Constraints& constraints, RuleId rule)
    : compiler_(compiler), constraints_(constraints), rule_(rule), some_(compiler.find_some(constraints)) {}

// False if a required property cannot be there.
bool ObjectRule::collect_properties() {
  RegexArena& arena = compiler_.arena_;
  const std::vector<std::string> required = compiler_.required_names(constraints_);
  const RegexId names = compiler_.name_regex(constraints_);
  for (const std::string& name : compiler_.property_names(constraints_)) {
    Property property{.demands = compiler_.property_demands(constraints_, name),
                      .required = std::ranges::find(required, name) != required.end()};
    const std::string escaped = json_escaped(name);
    const bool possible =
        compiler_.types_of(property.demands) != 0 && compiler_.lexer_.matches(names, escaped);
    if (!possible && property.required) return false;
    if (!possible) continue;
    property.key = arena.concat(arena.literal("\"" + escaped + "\""), compiler_.tokens_.colon);
    for (std::size_t j = 0; j < some_.size(); ++j)
      if (compiler_.lexer_.matches(some_[j].names, escaped)) property.may_be |= 1u << j;
    properties_.push_back(std::move(property));
  }
  return true;
}

Demands ObjectRule::region_demands(const std::vector<bool>& matched) {
  Demands demands;
  std::vector<bool> named(constraints_.schemas.size(), false);
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    if (!matched[i]) continue;
    compiler_.demand_part(demands, constraints_.schemas[patterns_[i].owner], *patterns_[i].schema);
    named[patterns_[i].owner] = true;
  }
  compiler_.demand_others(demands, constraints_, named);
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
  for (std::size_t i = 0; i < constraints_.schemas.size(); ++i) {
    const JsonValue& schema = *constraints_.schemas[i].schema;
    if (const JsonValue* patterns = schema.find("patternProperties"))
      for (const auto& [pattern, part] : patterns->members)
        patterns_.push_back({i, compiler_.pattern_regex(schema, "patternProperties", pattern), &part});
  }
  if (patterns_.size() > kMaxPatterns)
    compiler_.unsupported(
        *constraints_.schemas[patterns_[0].owner].schema, "patternProperties",
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
  for (std::size_t i = 0; i < properties_.size(); ++i)
    if (properties_[i].required) last_required_ = i + 1;
  // Properties are counted only as far as the bounds need it.
  counts_ = 1 + (count.max == kNoLimit ? count.min : count.max);
  if ((std::size_t{counts_} << some_.size()) * (properties_.size() + 1) > kMaxNodes)
    compiler_.unsupported(*constraints_.schemas[0].schema,
                          count.max == kNoLimit ? "minProperties" : "maxProperties",
                          "so large a number is not supported");
  Rules& rules = compiler_.rules_;
  const JsonTokens& tokens = compiler_.tokens_;
  end_ = rules.add_node(rule_);
  rules.set_final(end_);
  for (std::size_t i = 0; i < 2 * layers() * (properties_.size() + 1); ++i) {
    const NodeId added = rules.add_node(rule_);
    if (i == 0) first_ = added;
  }
  const NodeId opened = rules.add_node(rule_);
  rules.add_lexeme(rules.start(rule_), tokens.open_object, opened);
  if (may_close({0, 0}, 0)) rules.add_lexeme(opened, tokens.close_empty_object, end_);
  if (count.max > 0) rules.add_skip(opened, name_node({0, 0}, 0));
  for (std::uint32_t properties = 0; properties < counts_; ++properties)
    for (std::uint32_t found = 0; found < 1u << some_.size(); ++found) write_layer({properties, found});
}

bool ObjectRule::may_close(Layer layer, std::size_t i) const {
  return i >= last_required_ && layer.properties >= constraints_.properties.min &&
         layer.found + 1 == 1u << some_.size();
}

void ObjectRule::write_layer(Layer layer) {
  Rules& rules = compiler_.rules_;
  const JsonTokens& tokens = compiler_.tokens_;
  // With no bound above, the last layer means "at least so many".
  const bool full =
      constraints_.properties.max != kNoLimit && layer.properties >= constraints_.properties.max;
  for (std::size_t i = 0; i <= properties_.size(); ++i) {
    if (may_close(layer, i)) rules.add_lexeme(done_node(layer, i), tokens.close_object, end_);
    if (full) continue;
    if (i < properties_.size()) {
      write_property(layer, i);
    } else {
      for (const Region& region : regions_) write_region(layer, region);
    }
    rules.add_lexeme(done_node(layer, i), tokens.comma, name_node(layer, i));
  }
}

// For every set of properties that must be there and that this one may be.
void ObjectRule::write_property(Layer layer, std::size_t i) {
  Rules& rules = compiler_.rules_;
  const Property& property = properties_[i];
  const NodeId colon = rules.add_node(rule_);
  rules.add_lexeme(name_node(layer, i), property.key, colon);
  if (!property.required) rules.add_skip(name_node(layer, i), name_node(layer, i + 1));
  for (std::uint32_t as = 0; as < 1u << some_.size(); ++as) {
    if ((as & layer.found) != 0 || (as & ~property.may_be) != 0) continue;
    Demands demands = property.demands;
    demand_some(demands, as);
    compiler_.add_value(colon, demands, done_node(after(layer, as), i + 1));
  }
}

void ObjectRule::write_region(Layer layer, const Region& region) {
  Rules& rules = compiler_.rules_;
  const NodeId name = name_node(layer, properties_.size());
  for (std::uint32_t as = 0; as < 1u << some_.size(); ++as) {
    if ((as & layer.found) != 0) continue;
    std::vector<RegexId> names = {region.names};
    for (std::size_t j = 0; j < some_.size(); ++j)
      if ((as >> j & 1) != 0) names.push_back(some_[j].names);
    const RegexId all = compiler_.arena_.all_of(std::move(names));
    if (as != 0 && !compiler_.lexer_.alive(all)) continue;
    Demands demands = region.demands;
    demand_some(demands, as);
    const NodeId named = rules.add_node(rule_), colon = rules.add_node(rule_);
    rules.add_lexeme(name, json_quoted(compiler_.arena_, all), named);
    rules.add_lexeme(named, compiler_.tokens_.colon, colon);
    compiler_.add_value(colon, demands, done_node(after(layer, as), properties_.size()));
  }
}

void ObjectRule::demand_some(Demands& demands, std::uint32_t as) {
  for (std::size_t j = 0; j < some_.size(); ++j)
    if ((as >> j & 1) != 0) compiler_.demand_part(demands, some_[j].by, *some_[j].value);
}

}  // namespace sluice::grammar
