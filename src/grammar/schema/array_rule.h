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
  void write_items();
  void write_item(NodeId from, std::uint32_t index, std::uint32_t found, const std::vector<NodeId>& next);
  // How many of the items so far fulfil the schemas of contains, as one number: so many numbers there are,
  // ...
  std::uint32_t count_layers() const;
  // ... as far as one of them is counted, ...
  static std::uint32_t last_count(const SchemaCompiler::Contains& contains) {
    return contains.max == kNoLimit ? contains.min : contains.max;
  }
  // ... whether that is enough, and the number after an item that fulfils some, if it may come.
  bool enough(std::uint32_t found) const;
  std::optional<std::uint32_t> count_item(std::uint32_t found, std::uint32_t contained) const;
  void write_unique();

  SchemaCompiler& compiler_;
  const Constraints& constraints_;
  RuleId rule_;
  std::vector<SchemaCompiler::Contains> contains_;
  bool unevaluated_ = false;  // what contains evaluates matters
};

}  // namespace sluice::grammar
