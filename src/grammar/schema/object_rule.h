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
    Demands demands;
    bool required;
    RegexId key = RegexArena::kNothing;  // its name and the colon
    std::uint32_t may_be = 0;            // by bits: those of some_ that its name fits
  };
  // Names outside the known ones, and what holds for their values.
  struct Region {
    RegexId names;
    Demands demands;
  };
  struct NamePattern {
    std::size_t owner;  // among the schemas of the constraints
    RegexId regex;
    const JsonValue* schema;
  };

  bool collect_properties();
  void collect_regions();
  void split_region(RegexId names, std::size_t next, std::vector<bool>& matched);
  Demands region_demands(const std::vector<bool>& matched);
  // How many properties there are so far, as far as bounds need it, and which of some_ are, by bits.
  struct Layer {
    std::uint32_t properties, found;
  };
  std::size_t layers() const { return std::size_t{counts_} << some_.size(); }
  std::size_t index(Layer layer) const {
    return (std::size_t{layer.properties} << some_.size()) + layer.found;
  }
  Layer after(Layer layer, std::uint32_t as) const {
    return {std::min(layer.properties + 1, counts_ - 1), layer.found | as};
  }
  // Before a name, of property i or a later one, and after a complete value.
  NodeId name_node(Layer layer, std::size_t i) const {
    return first_ + static_cast<NodeId>(index(layer) * (properties_.size() + 1) + i);
  }
  NodeId done_node(Layer layer, std::size_t i) const {
    return first_ + static_cast<NodeId>((layers() + index(layer)) * (properties_.size() + 1) + i);
  }
  bool may_close(Layer layer, std::size_t i) const;
  void write_layer(Layer layer);
  void write_property(Layer layer, std::size_t i);
  void write_region(Layer layer, const Region& region);
  void demand_some(Demands& demands, std::uint32_t as);

  SchemaCompiler& compiler_;
  const Constraints& constraints_;
  RuleId rule_;
  std::vector<SchemaCompiler::SomeProperty> some_;
  std::vector<Property> properties_;
  std::vector<NamePattern> patterns_;
  std::vector<Region> regions_;
  std::size_t last_required_ = 0;  // one past it
  std::uint32_t counts_ = 1;
  NodeId first_ = 0, end_ = 0;
};

}  // namespace sluice::grammar
