// Collects what must hold for a value: references are followed, allOf is flattened, alternatives are
// expanded.
#include <algorithm>
#include <array>
#include <deque>

#include "base/error.h"
#include "base/quote.h"
#include "grammar/schema/compiler.h"

namespace sluice::grammar::schema {
namespace {

constexpr std::size_t kMaxAlternatives = 2000;
constexpr int kMaxNesting = 200;

constexpr std::string_view kAnnotations[] = {
    "$schema",
    "$id",
    "id",
    "$comment",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "$vocabulary",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "example",
    "readOnly",
    "writeOnly",
    "deprecated",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "then",
    "else",
    "minContains",
    "maxContains",
};

template <class List>
bool holds(const List& list, std::string_view key) {
  return std::ranges::find(list, key) != std::end(list);
}

bool says_nothing(const json::Value& schema) {
  return schema.is_boolean() ? schema.boolean : schema.members.empty();
}

bool is_choice(const Demand& demand) {
  return demand.part != Demand::Part::keywords && demand.part != Demand::Part::never;
}

}  // namespace

void Compiler::add_demand(Demands& demands, const Demand& demand) const {
  count_steps(demands.size());
  if (std::ranges::find(demands, demand) == demands.end()) demands.push_back(demand);
}

void Compiler::wrong(const json::Value& schema, std::string_view keyword, std::string_view what) const {
  fail(ErrorKind::input, "schema: {}/{}: {}", document_.path(schema), keyword, what);
}

void Compiler::unsupported(const json::Value& schema, std::string_view keyword, std::string_view what) const {
  fail(ErrorKind::unsupported, "schema: {}/{}: {}", document_.path(schema), keyword, what);
}

void Compiler::refuse_nesting(const json::Value& schema) const {
  fail(ErrorKind::unsupported, "schema: {}: schemas nested too deeply, or that only refer to themselves",
       document_.path(schema));
}

void Compiler::unsupported(const Constraints& constraints, std::string_view keyword,
                           std::string_view what) const {
  const auto has = [&](const Applied& at) { return at.find(keyword) != nullptr; };
  const auto found = std::ranges::find_if(constraints.schemas, has);
  unsupported(*(found != constraints.schemas.end() ? *found : constraints.schemas[0]).schema, keyword, what);
}

Demands Compiler::demands_of(const json::Value& schema, const Scope* scope) {
  const std::pair key(&schema, scope);
  if (const auto found = demands_of_.find(key); found != demands_of_.end()) return found->second;
  Demands demands;
  demand(demands, schema, scope);
  return demands_of_[key] = demands;
}

void Compiler::demand(Demands& demands, const json::Value& schema, const Scope* scope) {
  if (schema.is_boolean()) {
    if (!schema.boolean) add_demand(demands, {&schema, Demand::Part::never, nullptr});
    return;
  }
  if (!schema.is_object())
    fail(ErrorKind::input, "schema: {}: a schema is an object, true or false", document_.path(schema));
  struct Depth {
    int& depth;
    ~Depth() { --depth; }
  } const nested{++depth_};
  if (depth_ > kMaxNesting) refuse_nesting(schema);
  if (document_.has_dynamic_references()) scope = scopes_.entered(scope, document_.resource_of(schema));
  for (const char* key : {"unevaluatedProperties", "unevaluatedItems"})
    if (const json::Value* others = schema.find(key); others != nullptr && !says_nothing(*others))
      if (!Scopes::collects(scope) || scope->owner != &schema) scope = scopes_.owned(scope, schema);
  const Applied at{&schema, scope};
  const json::Value* reference = schema.find("$ref");
  if (reference != nullptr && document_.reference_alone()) {
    demand_reference(demands, at, "$ref", *reference);
  } else {
    for (const auto& [key, value] : schema.members) demand_keyword(demands, at, key, value);
  }
}

void Compiler::demand_reference(Demands& demands, const Applied& at, std::string_view key,
                                const json::Value& reference) {
  if (!reference.is_string()) wrong(*at.schema, key, "expected a string");
  // A schema that only refers to itself adds no constraint.
  const json::Value& target = key == "$dynamicRef"
                                  ? document_.resolve_dynamic(*at.schema, reference.string, at.scope)
                                  : document_.resolve(*at.schema, reference.string);
  for (const Demand& known : demands_of(target, at.scope)) add_demand(demands, known);
}

void Compiler::demand_keyword(Demands& demands, const Applied& at, const std::string& key,
                              const json::Value& value) {
  const json::Value& schema = *at.schema;
  if (holds(kAnnotations, key)) return;
  if (key == "$recursiveRef") unsupported(schema, key, "not supported");
  if (key == "$ref" || key == "$dynamicRef") return demand_reference(demands, at, key, value);
  if (key == "allOf" || key == "anyOf" || key == "oneOf") {
    if (!value.is_array() || value.items.empty()) wrong(schema, key, "expected an array of schemas");
    if (key == "anyOf") return add_demand(demands, {&schema, Demand::Part::any_of, at.scope});
    if (key == "oneOf") return add_demand(demands, {&schema, Demand::Part::one_of, at.scope});
    for (const json::Value& part : value.items) demand(demands, part, at.scope);
    return;
  }
  if (key == "if") {
    if (schema.find("then") != nullptr || schema.find("else") != nullptr || Scopes::collects(at.scope))
      add_demand(demands, {&schema, Demand::Part::conditional, at.scope});
    return;
  }
  if (key == "not") return demand(demands, negation(value), scopes_.negated(at.scope));
  if (key == "dependencies" || key == "dependentRequired" || key == "dependentSchemas")
    return demand_dependencies(demands, at, key, value);
  add_demand(demands, {&schema, Demand::Part::keywords, at.scope});
}

// Either the property is absent, or it and what it requires are present.
void Compiler::demand_dependencies(Demands& demands, const Applied& at, const std::string& key,
                                   const json::Value& value) {
  const json::Value& schema = *at.schema;
  if (!value.is_object()) wrong(schema, key, "expected an object");
  const json::Value*& made = dependencies_[&value];
  if (made == nullptr) {
    std::vector<json::Value> all;
    constexpr std::size_t kAround = 16;  // values added per required name
    for (const auto& [name, needs] : value.members) {
      count_made(needs, kAround);
      json::Value not_object = json::Value::object({{"type", json::Value::array({})}});
      for (const char* type : {"null", "boolean", "array", "string", "number"})
        not_object.members[0].second.items.push_back(json::Value::of(std::string(type)));
      json::Value absent =
          json::Value::object({{"type", json::Value::of(std::string("object"))},
                               {"properties", json::Value::object({{name, json::Value::of(false)}})}});
      json::Value present = json::Value::object(
          {{"type", json::Value::of(std::string("object"))}, {"required", json::Value::array({})}});
      std::vector<json::Value>& required = present.members[1].second.items;
      if (needs.is_array()) required = needs.items;
      if (needs.is_string()) required.push_back(needs);
      required.push_back(json::Value::of(name));
      if (!needs.is_array() && !needs.is_string())
        present.members.emplace_back("allOf", json::Value::array({needs}));
      all.push_back(json::Value::object({{"anyOf", json::Value::array({absent, present, not_object})}}));
    }
    if (all.empty()) return;
    made = &document_.keep(json::Value::object({{"allOf", json::Value::array(std::move(all))}}), schema);
  }
  demand(demands, *made, at.scope);
}

unsigned Compiler::types_of(const json::Value& schema) {
  const auto [found, added] = types_of_.try_emplace(&schema, kAllTypes);
  if (!added) return found->second;
  unsigned types = kAllTypes;
  if (const json::Value* type = schema.find("type")) types &= type_bits(schema, *type);
  const auto bit_of = [](const json::Value& value) -> unsigned {
    constexpr unsigned kBits[] = {kNull, kBoolean, 0, kString, kArray, kObject};
    if (value.is_number()) return value.number.is_integer() ? kInteger : kFraction;
    return kBits[static_cast<int>(value.kind)];
  };
  if (const json::Value* constant = schema.find("const")) types &= bit_of(*constant);
  if (const json::Value* values = schema.find("enum"); values != nullptr && values->is_array()) {
    unsigned bits = 0;
    for (const json::Value& value : values->items) bits |= bit_of(value);
    types &= bits;
  }
  return types_of_[&schema] = types;
}

unsigned Compiler::types_of(const Demands& demands) {
  unsigned types = kAllTypes;
  for (const Demand& demand : demands) {
    if (demand.part == Demand::Part::never) return 0;
    if (demand.part == Demand::Part::keywords) types &= types_of(*demand.schema);
  }
  return types;
}

std::vector<Demands> Compiler::alternatives(const Demands& demands, bool rough) {
  // Each demand comes with the choice that it came from: one that comes from itself would be expanded
  // forever.
  struct Choice {
    Demand demand;
    const Choice* from;
  };
  struct Way {
    Demands demands;
    std::vector<const Choice*> from;

    void add(const Compiler& compiler, const Demand& demand, const Choice* choice) {
      compiler.add_demand(demands, demand);
      if (from.size() < demands.size()) from.push_back(choice);
    }
  };
  std::deque<Choice> choices;
  std::vector<Demands> done;
  std::vector<Way> open(1);
  for (const Demand& demand : demands) open[0].add(*this, demand, nullptr);
  while (!open.empty()) {
    check_time();
    Way next = std::move(open.back());
    open.pop_back();
    if (types_of(next.demands) == 0) continue;
    const std::size_t at = std::ranges::find_if(next.demands, is_choice) - next.demands.begin();
    if (at == next.demands.size()) {
      done.push_back(std::move(next.demands));
    } else {
      choices.push_back({next.demands[at], next.from[at]});
      const Choice& choice = choices.back();
      for (const Choice* from = choice.from; from != nullptr; from = from->from)
        if (from->demand == choice.demand) refuse_nesting(*choice.demand.schema);
      const std::vector<Demands> ways = branches(choice.demand, rough);
      for (auto way = ways.rbegin(); way != ways.rend(); ++way) {
        Way& chosen = open.emplace_back();
        for (std::size_t i = 0; i < at; ++i) chosen.add(*this, next.demands[i], next.from[i]);
        for (const Demand& demand : *way) chosen.add(*this, demand, &choice);
        for (std::size_t i = at + 1; i < next.demands.size(); ++i)
          chosen.add(*this, next.demands[i], next.from[i]);
      }
    }
    if (done.size() + open.size() > kMaxAlternatives) {
      const json::Value& schema = *demands[0].schema;
      fail(ErrorKind::unsupported, "schema: {}: more than {} combinations of alternatives",
           document_.path(schema), kMaxAlternatives);
    }
  }
  return done;
}

std::vector<Demands> Compiler::branches(const Demand& demand, bool rough) {
  const Applied at{demand.schema, demand.scope};
  std::vector<Demands> result;
  if (demand.part == Demand::Part::any_of) return any_branches(at, *at.find("anyOf"));
  if (demand.part == Demand::Part::one_of) {
    const json::Value& one_of = *at.find("oneOf");
    if (!rough) return exclusive_branches(at, one_of);
    for (const json::Value& part : one_of.items) result.push_back(demands_of(part, at.scope));
  } else {
    const json::Value& condition = *at.find("if");
    const json::Value *then = at.find("then"), *otherwise = at.find("else");
    Demands yes = demands_of(condition, at.scope), no;
    if (!rough && (then != nullptr || otherwise != nullptr))
      no = demands_of(negation(condition), scopes_.negated(at.scope));
    if (then != nullptr)
      for (const Demand& more : demands_of(*then, at.scope)) add_demand(yes, more);
    if (otherwise != nullptr)
      for (const Demand& more : demands_of(*otherwise, at.scope)) add_demand(no, more);
    result = {std::move(yes), std::move(no)};
  }
  return result;
}

// At least one branch holds. If evaluation matters, so does which others hold, and every set of branches is
// an alternative; that branches outside the set may hold too makes no alternative too wide.
std::vector<Demands> Compiler::any_branches(const Applied& at, const json::Value& any_of) {
  constexpr std::size_t kMaxTold = 6;
  std::vector<Demands> parts, result;
  for (const json::Value& part : any_of.items) parts.push_back(demands_of(part, at.scope));
  if (!Scopes::collects(at.scope)) return parts;
  if (parts.size() > kMaxTold)
    unsupported(
        *at.schema, "anyOf",
        fmt::format("more than {} alternatives beside unevaluatedProperties or unevaluatedItems are not "
                    "supported",
                    kMaxTold));
  for (std::size_t set = 1; set < std::size_t{1} << parts.size(); ++set) {
    Demands& way = result.emplace_back();
    for (std::size_t i = 0; i < parts.size(); ++i)
      if ((set >> i & 1) != 0)
        for (const Demand& more : parts[i]) add_demand(way, more);
  }
  return result;
}

// Each branch and none of the others; branches that are disjoint with it need not be excluded.
std::vector<Demands> Compiler::exclusive_branches(const Applied& at, const json::Value& one_of) {
  constexpr int kDepth = 3;
  const std::pair key(&one_of, at.scope);
  if (const auto known = exclusive_.find(key); known != exclusive_.end()) return known->second;
  const Scope* negated = scopes_.negated(at.scope);
  const std::size_t count = one_of.items.size();
  std::vector<Demands> branches;
  for (const json::Value& part : one_of.items) branches.push_back(demands_of(part, at.scope));
  std::vector<Demands> result = branches;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = i + 1; j < count; ++j) {
      count_steps(1 + branches[i].size() + branches[j].size());
      Demands both = branches[i];
      for (const Demand& demand : branches[j]) add_demand(both, demand);
      if (provably_empty(both, kDepth)) continue;
      try {
        const Demands not_j = demands_of(negation(one_of.items[j]), negated),
                      not_i = demands_of(negation(one_of.items[i]), negated);
        for (const Demand& demand : not_j) add_demand(result[i], demand);
        for (const Demand& demand : not_i) add_demand(result[j], demand);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::unsupported) throw;
        unsupported(
            *at.schema, "oneOf",
            fmt::format("branches {} and {} may both hold, which is not supported ({})", i, j, error.what()));
      }
    }
  }
  return exclusive_[key] = result;
}

bool Compiler::provably_empty(const Demands& demands, int depth) {
  if (types_of(demands) == 0) return true;
  if (depth == 0) return false;
  for (const Demands& way : alternatives(demands, true))
    if (!provably_empty(merge(way), depth)) return false;
  return true;
}

bool Compiler::provably_empty(const Constraints& constraints, int depth) {
  check_time();
  if (constraints.values)
    return std::ranges::none_of(*constraints.values,
                                [&](const json::Value* value) { return admits(constraints, *value); });
  unsigned types = constraints.types;
  json::NumberRange numbers = constraints.numbers;
  numbers.integers = (types & kInteger) != 0;
  numbers.fractions = (types & kFraction) != 0;
  if (numbers.empty()) types &= ~unsigned{kInteger | kFraction};
  if ((types & kString) != 0 && !lexer_.alive(string_content(constraints))) types &= ~unsigned{kString};
  if ((types & kArray) != 0) {
    bool empty = constraints.items.min > constraints.items.max;
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(constraints.items.min, 4) && !empty; ++i)
      empty = provably_empty(item_demands(constraints, i, kAllContained), depth - 1);
    if (empty) types &= ~unsigned{kArray};
  }
  if ((types & kObject) != 0) {
    bool empty = constraints.properties.min > constraints.properties.max;
    for (const std::string& name : required_names(constraints))
      if (!empty) empty = provably_empty(property_demands(constraints, name), depth - 1);
    if (empty) types &= ~unsigned{kObject};
  }
  return types == 0;
}

}  // namespace sluice::grammar::schema
