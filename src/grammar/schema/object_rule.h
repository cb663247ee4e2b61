// The rule of an object: known properties in the order of the schema, then others.
#pragma once

#include "grammar/schema/compiler.h"

namespace sluice::grammar {

class ObjectRule {
 public:
  ObjectRule(SchemaCompiler& compiler, const Constraints& constraints, RuleId rule);

  // Adds the object from the rule's start.
  void write();

 private:
  struct Property {
    std::string name;
    Demands demands;
    bool required;
  };
  // Names outside the known ones, and what holds for their values.
  struct Region {
    RegexId names;
    Demands demands;
  };
  struct NamePattern {
    const JsonValue* owner;
    RegexId regex;
    const JsonValue* schema;
  };

  bool collect_properties();
  void collect_regions();
  void split_region(RegexId names, std::size_t next, std::vector<bool>& matched);
  Demands region_demands(const std::vector<bool>& matched);
  void write_layers(std::uint32_t layers);

  SchemaCompiler& compiler_;
  const Constraints& constraints_;
  RuleId rule_;
  std::vector<Property> properties_;
  std::vector<NamePattern> patterns_;
  std::vector<Region> regions_;
};

}  // namespace sluice::grammar
