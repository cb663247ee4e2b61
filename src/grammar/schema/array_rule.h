// The rule of an array: items by position, counted as far as bounds require it.
#pragma once

#include "grammar/schema/compiler.h"

namespace sluice::grammar::schema {

class ArrayRule {
 public:
  ArrayRule(Compiler& compiler, const Constraints& constraints, RuleId rule);

  // Adds the array at the rule's start.
  void write();

 private:
  void write_items();
  void write_item(NodeId from, std::uint32_t index, std::uint32_t found, const std::vector<NodeId>& next);
  // How many of the items so far match each `contains` schema is encoded as one number; this is the number of
  // codes.
  std::uint32_t count_layers() const;
  // The highest count distinguished for one schema.
  static std::uint32_t last_count(const Compiler::Contains& contains) {
    return contains.max == regex::kNoLimit ? contains.min : contains.max;
  }
  // Whether the counts suffice for the array to end, and the code after an item that matches some, if it is
  // allowed.
  bool enough(std::uint32_t found) const;
  std::optional<std::uint32_t> count_item(std::uint32_t found, std::uint32_t contained) const;
  void write_unique();

  Compiler& compiler_;
  const Constraints& constraints_;
  RuleId rule_;
  std::vector<Compiler::Contains> contains_;
  bool unevaluated_ = false;  // whether evaluation by `contains` matters
};

}  // namespace sluice::grammar::schema
