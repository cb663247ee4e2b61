#include "grammar/schema/object_rule.h"

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "grammar/json/string.h"

namespace sluice::grammar::schema {

std::vector<std::string> Compiler::property_names(const Constraints& constraints) const {
  std::vector<std::string> names;
  std::unordered_map<std::string_view, bool> known;
  const auto add = [&](const std::string& name) {
    if (known.try_emplace(name, true).second) names.push_back(name);
  };
  for (const Applied& at : constraints.schemas)
    if (const json::Value* properties = at.find("properties"))
      for (const auto& [name, unused] : properties->members) add(name);
  for (const Applied& at : constraints.schemas)
    if (const json::Value* required = at.find("required"))
      for (const json::Value& name : required->items) add(name.string);
  return names;
}

std::vector<std::string> Compiler::required_names(const Constraints& constraints) const {
  std::vector<std::string> names;
  std::unordered_set<std::string_view> known;
  for (const Applied& at : constraints.schemas)
    if (const json::Value* required = at.find("required"))
      for (const json::Value& name : required->items) {
        count_steps(1);
        if (known.insert(name.string).second) names.push_back(name.string);
      }
  return names;
}

const json::Value* Compiler::member(const json::Value& object, const std::string& name) {
  constexpr std::size_t kMany = 64;
  if (object.members.size() < kMany) return object.find(name);
  auto& members = members_[&object];
  if (members.empty())
    for (const auto& [key, value] : object.members) members.emplace(key, &value);
  const auto found = members.find(name);
  return found == members.end() ? nullptr : found->second;
}

Demands Compiler::property_demands(const Constraints& constraints, const std::string& name) {
  Demands demands;
  std::vector<bool> named(constraints.schemas.size(), false);
  for (std::size_t i = 0; i < constraints.schemas.size(); ++i) {
    const Applied& at = constraints.schemas[i];
    if (const json::Value* properties = at.find("properties"))
      if (const json::Value* own = member(*properties, name)) {
        demand_part(demands, at, *own);
        named[i] = true;
      }
    if (const json::Value* patterns = at.find("patternProperties"))
      for (const auto& [pattern, part] : patterns->members) {
        check_time();
        if (lexer_.matches(pattern_regex(*at.schema, "patternProperties", pattern), json::escaped(name))) {
          demand_part(demands, at, part);
          named[i] = true;
        }
      }
  }
  demand_others(demands, constraints, named);
  return demands;
}

void Compiler::demand_others(Demands& demands, const Constraints& constraints,
                             const std::vector<bool>& named) {
  const std::vector<Applied>& schemas = constraints.schemas;
  for (std::size_t i = 0; i < schemas.size(); ++i)
    if (const json::Value* others = schemas[i].find("additionalProperties"); others != nullptr && !named[i])
      demand_part(demands, schemas[i], *others);
  for (const Applied& at : schemas) {
    const json::Value* others = at.find("unevaluatedProperties");
    if (others == nullptr || !Scopes::collects(at.scope)) continue;
    bool evaluated = false;
    for (std::size_t i = 0; i < schemas.size() && !evaluated; ++i)
      evaluated = Scopes::tells(schemas[i].scope, at.scope) &&
                  (named[i] || schemas[i].find("additionalProperties") != nullptr ||
                   (schemas[i].schema != at.schema && schemas[i].find("unevaluatedProperties") != nullptr));
    if (!evaluated) demand_part(demands, at, *others);
  }
}

// The names that satisfy a schema.
regex::Id Compiler::name_regex(const json::Value& schema, const Scope* scope) {
  std::vector<regex::Id> choices;
  for (const Demands& way : alternatives(demands_of(schema, scope))) {
    Constraints merged = merge(way);
    if ((merged.types & kString) == 0) continue;
    if (merged.values) {
      std::vector<std::string> texts;
      for (const json::Value* value : *merged.values)
        if (value->is_string() && admits(merged, *value)) texts.push_back(json::escaped(value->string));
      choices.push_back(arena_.literals(std::move(texts)));
    } else {
      choices.push_back(string_content(merged));
    }
  }
  return arena_.any_of(std::move(choices));
}

// The names that propertyNames allows.
regex::Id Compiler::name_regex(const Constraints& constraints) {
  std::vector<regex::Id> conditions;
  for (const Applied& at : constraints.schemas)
    if (const json::Value* names = at.find("propertyNames"))
      conditions.push_back(name_regex(*names, scopes_.inner(at.scope)));
  if (conditions.empty()) conditions.push_back(arena_.repeat(any_char_, 0));
  return arena_.all_of(std::move(conditions));
}

std::vector<Compiler::SomeProperty> Compiler::find_some(const Constraints& constraints) {
  constexpr std::size_t kMaxSome = 3;
  std::vector<SomeProperty> result;
  for (const Applied& at : constraints.schemas) {
    const json::Value* some = at.find("$some-property");
    if (some == nullptr) continue;
    if (result.size() == kMaxSome)
      unsupported(*at.schema, "not",
                  fmt::format("more than {} negated keywords for properties of one object are not supported",
                              kMaxSome));
    result.push_back({at, name_regex(*some->find("names"), scopes_.inner(at.scope)), some->find("value")});
  }
  return result;
}

ObjectRule::ObjectRule(Compiler& compiler, const Constraints& constraints, RuleId rule)
    : compiler_(compiler), constraints_(constraints), rule_(rule), some_(compiler.find_some(constraints)) {}

// Returns false if a required property is impossible.
bool ObjectRule::collect_properties() {
  regex::Arena& arena = compiler_.arena_;
  const std::vector<std::string> listed = compiler_.required_names(constraints_);
  const std::unordered_set<std::string_view> required(listed.begin(), listed.end());
  const regex::Id names = compiler_.name_regex(constraints_);
  for (const std::string& name : compiler_.property_names(constraints_)) {
    compiler_.check_time();
    Property property{.demands = compiler_.property_demands(constraints_, name),
                      .required = required.contains(name)};
    const std::string escaped = json::escaped(name);
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

// Names that match a pattern and names that do not form separate regions.
void ObjectRule::split_region(regex::Id names, std::size_t next, std::vector<bool>& matched) {
  compiler_.check_time();
  if (!compiler_.lexer_.alive(names)) return;
  if (next == patterns_.size()) {
    Demands demands = region_demands(matched);
    if (compiler_.types_of(demands) != 0) regions_.push_back({names, std::move(demands)});
    return;
  }
  regex::Arena& arena = compiler_.arena_;
  matched[next] = true;
  split_region(arena.all_of({names, patterns_[next].regex}), next + 1, matched);
  matched[next] = false;
  split_region(arena.all_of({names, arena.complement(patterns_[next].regex)}), next + 1, matched);
}

void ObjectRule::collect_regions() {
  constexpr std::size_t kMaxPatterns = 10;
  regex::Arena& arena = compiler_.arena_;
  std::vector<std::string> known;
  for (const std::string& name : compiler_.property_names(constraints_)) known.push_back(json::escaped(name));
  for (std::size_t i = 0; i < constraints_.schemas.size(); ++i) {
    const json::Value& schema = *constraints_.schemas[i].schema;
    if (const json::Value* patterns = schema.find("patternProperties"))
      for (const auto& [pattern, part] : patterns->members)
        patterns_.push_back({i, compiler_.pattern_regex(schema, "patternProperties", pattern), &part});
  }
  if (patterns_.size() > kMaxPatterns)
    compiler_.unsupported(
        *constraints_.schemas[patterns_[0].owner].schema, "patternProperties",
        fmt::format("more than {} patterns for one object are not supported", kMaxPatterns));
  regex::Id names = compiler_.name_regex(constraints_);
  if (!known.empty()) names = arena.all_of({names, arena.complement(arena.literals(std::move(known)))});
  std::vector<bool> matched(patterns_.size(), false);
  if (compiler_.types_of(region_demands(matched)) == 0 && patterns_.empty()) return;
  split_region(names, 0, matched);
}

// Divides names into disjoint classes by their last byte; the empty name is in the first class.
std::vector<regex::Id> ObjectRule::name_classes(regex::Id names, std::size_t count) {
  if (count == 1) return {names};
  regex::Arena& arena = compiler_.arena_;
  std::vector<regex::Id> classes;
  for (std::size_t i = 0; i < count; ++i) {
    regex::ByteSet last;
    for (unsigned byte = 0; byte < 256; ++byte)
      if (byte % count == i) last.add(byte);
    const regex::Id ends = arena.concat(regex::Arena::kEverything, arena.bytes(last));
    const regex::Id own = arena.all_of({names, i == 0 ? arena.optional(ends) : ends});
    if (compiler_.lexer_.alive(own)) classes.push_back(own);
  }
  return classes;
}

// Unlisted names may repeat. If several are needed to reach the minimum number of properties, only names of
// different classes count as different.
void ObjectRule::tell_names_apart() {
  constexpr std::size_t kMaxWords = 12, kMaxClassesOfRegion = 16;
  const std::uint32_t min = constraints_.properties.min;
  const std::uint32_t required = std::ranges::count_if(properties_, &Property::required);
  if (min < required + 2 || regions_.empty()) return;
  told_apart_ = true;
  // Every set of classes is a state, so many classes are affordable only if few names are missing.
  const std::uint32_t missing = min - required;
  const std::size_t affordable = missing <= 2 ? kMaxClasses : missing == 3 ? 32 : missing <= 8 ? 12 : 1;
  const std::size_t count = std::clamp<std::size_t>(affordable / regions_.size(), 1, kMaxClassesOfRegion);
  std::size_t classes = 0;
  bool all_listed = true;
  for (Region& region : regions_) {
    region.first_class = classes;
    if (const auto words = compiler_.lexer_.words(region.names, kMaxWords)) {
      for (const std::string& word : *words) region.classes.push_back(compiler_.arena_.literal(word));
    } else {
      region.classes = name_classes(region.names, count);
      all_listed = false;
    }
    classes += region.classes.size();
  }
  if (properties_.size() + std::min(classes, kMaxClasses) < min && !all_listed)
    compiler_.unsupported(constraints_, "minProperties",
                          "so many properties whose names are not listed cannot be told apart");
}

void ObjectRule::write() {
  const CountRange& count = constraints_.properties;
  if (count.min > count.max || !collect_properties()) return;
  collect_regions();
  for (std::size_t i = 0; i < properties_.size(); ++i)
    if (properties_[i].required) last_required_ = i + 1;
  tell_names_apart();
  Rules& rules = compiler_.rules_;
  const JsonTokens& tokens = compiler_.tokens_;
  end_ = rules.add_node(rule_);
  rules.set_final(end_);
  const NodeId opened = rules.add_node(rule_);
  rules.add_lexeme(rules.start(rule_), tokens.open_object, opened);
  if (may_close({})) rules.add_lexeme(opened, tokens.close_empty_object, end_);
  if (count.max > 0) rules.add_skip(opened, nodes({}).name);
  while (!unwritten_.empty()) {
    const State state = unwritten_.back();
    unwritten_.pop_back();
    write_state(state, nodes(state));
  }
}

ObjectRule::Nodes ObjectRule::nodes(const State& state) {
  constexpr std::size_t kMaxStates = 200'000;
  const auto [found, added] = nodes_.try_emplace(state);
  if (!added) return found->second;
  if (nodes_.size() > kMaxStates)
    compiler_.unsupported(constraints_,
                          constraints_.properties.max == regex::kNoLimit ? "minProperties" : "maxProperties",
                          "so large a number is not supported");
  compiler_.check_time();
  found->second = {compiler_.rules_.add_node(rule_), compiler_.rules_.add_node(rule_)};
  unwritten_.push_back(state);
  return found->second;
}

// Properties are counted only as far as the bounds require it.
ObjectRule::State ObjectRule::after_property(const State& state, std::uint32_t as) const {
  const CountRange& count = constraints_.properties;
  State after = state;
  if (count.max != regex::kNoLimit) ++after.written;
  after.different = std::min(after.different + 1, count.min);
  after.found |= as;
  return after;
}

ObjectRule::State ObjectRule::after_other(const State& state, std::uint32_t as,
                                          std::size_t name_class) const {
  State after = after_property(state, as);
  for (std::size_t j = 0; j < some_.size(); ++j)
    if ((as >> j & 1) != 0 && !(some_[j].value->is_boolean() && some_[j].value->boolean))
      after.loose |= 1u << j;
  if (!told_apart_ || state.different == constraints_.properties.min) return after;
  const std::uint64_t bit = std::uint64_t{1} << std::min(name_class, kMaxClasses - 1);
  if ((state.seen & bit) != 0) after.different = state.different;
  after.seen = after.different < constraints_.properties.min ? state.seen | bit : 0;
  return after;
}

bool ObjectRule::may_close(const State& state) const {
  return state.next >= last_required_ && state.different >= constraints_.properties.min &&
         state.found + 1 == 1u << some_.size();
}

void ObjectRule::write_state(const State& state, Nodes at) {
  Rules& rules = compiler_.rules_;
  const JsonTokens& tokens = compiler_.tokens_;
  if (may_close(state)) rules.add_lexeme(at.done, tokens.close_object, end_);
  if (constraints_.properties.max != regex::kNoLimit && state.written >= constraints_.properties.max) return;
  if (state.next < properties_.size()) {
    write_property(state, at.name);
  } else {
    for (const Region& region : regions_) write_region(state, at.name, region);
  }
  rules.add_lexeme(at.done, tokens.comma, at.name);
}

// For every subset of the required "some properties" that this one may satisfy.
void ObjectRule::write_property(const State& state, NodeId name) {
  Rules& rules = compiler_.rules_;
  const Property& property = properties_[state.next];
  const NodeId colon = rules.add_node(rule_);
  rules.add_lexeme(name, property.key, colon);
  State passed = state;
  ++passed.next;
  if (!property.required) rules.add_skip(name, nodes(passed).name);
  for (std::uint32_t as = 0; as < 1u << some_.size(); ++as) {
    if ((as & state.found) != 0 || (as & ~property.may_be) != 0) continue;
    Demands demands = property.demands;
    demand_some(demands, as);
    compiler_.add_value(colon, demands, nodes(after_property(passed, as)).done);
  }
}

// A later property of the same name replaces an earlier one, so it must satisfy what that satisfied, or have
// another name.
regex::Id ObjectRule::names_as(const State& state, std::uint32_t as, regex::Id names) {
  regex::Arena& arena = compiler_.arena_;
  if ((as & state.found & ~state.loose) != 0) return regex::Arena::kNothing;
  std::vector<regex::Id> conditions = {names};
  for (std::size_t j = 0; j < some_.size(); ++j) {
    if ((as >> j & 1) != 0) {
      conditions.push_back(some_[j].names);
    } else if ((state.loose >> j & 1) != 0) {
      conditions.push_back(arena.complement(some_[j].names));
    }
  }
  if (conditions.size() == 1) return names;
  const regex::Id all = arena.all_of(std::move(conditions));
  return compiler_.lexer_.alive(all) ? all : regex::Arena::kNothing;
}

void ObjectRule::write_region(const State& state, NodeId name, const Region& region) {
  Rules& rules = compiler_.rules_;
  const std::vector<regex::Id> whole = {region.names};
  const std::vector<regex::Id>& classes =
      told_apart_ && state.different < constraints_.properties.min ? region.classes : whole;
  for (std::uint32_t as = 0; as < 1u << some_.size(); ++as) {
    Demands demands = region.demands;
    demand_some(demands, as);
    std::map<NodeId, NodeId> named_by_end;  // names that lead to the same node
    for (std::size_t i = 0; i < classes.size(); ++i) {
      const regex::Id names = names_as(state, as, classes[i]);
      if (names == regex::Arena::kNothing) continue;
      const NodeId done = nodes(after_other(state, as, region.first_class + i)).done;
      const auto [named, added] = named_by_end.try_emplace(done);
      if (added) {
        const NodeId colon = rules.add_node(rule_);
        named->second = rules.add_node(rule_);
        rules.add_lexeme(named->second, compiler_.tokens_.colon, colon);
        compiler_.add_value(colon, demands, done);
      }
      rules.add_lexeme(name, json::quoted(compiler_.arena_, names), named->second);
    }
  }
}

void ObjectRule::demand_some(Demands& demands, std::uint32_t as) {
  for (std::size_t j = 0; j < some_.size(); ++j)
    if ((as >> j & 1) != 0) compiler_.demand_part(demands, some_[j].by, *some_[j].value);
}

}  // namespace sluice::grammar::schema
