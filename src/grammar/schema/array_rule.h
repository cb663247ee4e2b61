// The rule of an array: items by position, counted as far as bounds need it.
#pragma once

#include "grammar/schema/compiler.h"

namespace sluice::grammar {

class ArrayRule {
 public:
  ArrayRule(SchemaCompiler& compiler, const Constraints& constraints, RuleId rule);

  // Adds the array from the rule's start.
  void write();

 private:
  // How many items must fulfil one schema.
  struct Contains {
    const JsonValue* schema = nullptr;
    std::uint32_t min = 0, max = kNoLimit;
  };

  Contains find_contains();
  void write_items(const Contains& contains);
  void write_item(NodeId from, std::uint32_t index, const Contains& contains, std::uint32_t found,
                  const std::vector<NodeId>& next);
  void write_unique();

  SchemaCompiler& compiler_;
  const Constraints& constraints_;
  RuleId rule_;
};

}  // namespace sluice::grammar
