// The rule of an object: listed properties in the order of the schema, then others.
#pragma once

#include <compare>
#include <map>
#include <vector>

#include "grammar/schema/compiler.h"

namespace sluice::grammar::schema {

class ObjectRule {
 public:
  ObjectRule(Compiler& compiler, const Constraints& constraints, RuleId rule);

  // Adds the object at the rule's start.
  void write();

 private:
  static constexpr std::size_t kMaxClasses = 64;  // classes beyond this share the last bit and count as one

  struct Property {
    Demands demands;
    bool required;
    regex::Id key = regex::Arena::kNothing;  // the name and the colon
    std::uint32_t may_be = 0;                // bits: the members of some_ that its name matches
  };
  // Unlisted names with the same constraints on their values.
  struct Region {
    regex::Id names;
    Demands demands;
    std::vector<regex::Id> classes = {};  // disjoint classes of names
    std::size_t first_class = 0;
  };
  struct NamePattern {
    std::size_t owner;  // index into the constraints' schemas
    regex::Id regex;
    const json::Value* schema;
  };
  // What has been written, as far as it affects what may follow.
  struct State {
    std::size_t next = 0;         // the first property that may follow
    std::uint32_t written = 0;    // properties, up to the maximum
    std::uint32_t different = 0;  // of them certainly distinct, up to the minimum
    std::uint32_t found = 0;      // bits: the satisfied members of some_
    // those of `found` that a later property of the same name could undo
    std::uint32_t loose = 0;
    std::uint64_t seen = 0;  // bits: classes of names used, while distinct ones are missing

    friend auto operator<=>(const State&, const State&) = default;
  };
  struct Nodes {
    NodeId name, done;  // before a name, and after a complete value
  };

  bool collect_properties();
  void collect_regions();
  void split_region(regex::Id names, std::size_t next, std::vector<bool>& matched);
  void tell_names_apart();
  std::vector<regex::Id> name_classes(regex::Id names, std::size_t count);
  Demands region_demands(const std::vector<bool>& matched);
  State after_property(const State& state, std::uint32_t as) const;
  State after_other(const State& state, std::uint32_t as, std::size_t name_class) const;
  bool may_close(const State& state) const;
  Nodes nodes(const State& state);
  void write_state(const State& state, Nodes at);
  void write_property(const State& state, NodeId name);
  void write_region(const State& state, NodeId name, const Region& region);
  // The names that can count as the members `as` of some_; nothing if they cannot now.
  regex::Id names_as(const State& state, std::uint32_t as, regex::Id names);
  void demand_some(Demands& demands, std::uint32_t as);

  Compiler& compiler_;
  const Constraints& constraints_;
  RuleId rule_;
  std::vector<Compiler::SomeProperty> some_;
  std::vector<Property> properties_;
  std::vector<NamePattern> patterns_;
  std::vector<Region> regions_;
  std::size_t last_required_ = 0;  // one past it
  bool told_apart_ = false;        // unlisted names are divided into classes
  std::map<State, Nodes> nodes_;
  std::vector<State> unwritten_;
  NodeId end_ = 0;
};

}  // namespace sluice::grammar::schema
