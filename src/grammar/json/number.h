// The text of JSON numbers within bounds, as regular expressions.
#pragma once

#include <optional>
#include <vector>

#include "grammar/json/decimal.h"
#include "grammar/regex/arena.h"

namespace sluice::grammar::json {

struct NumberRange {
  std::optional<Decimal> low, high;
  bool above_low = false, below_high = false;  // the bound itself is excluded
  bool integers = true;                        // numbers without a fraction are allowed
  bool fractions = true;                       // numbers with a nonzero fraction are allowed

  void raise(const Decimal& bound, bool exclusive);
  void lower(const Decimal& bound, bool exclusive);
  bool contains(const Decimal& value) const;
  // Whether it certainly contains no number.
  bool empty() const;
};

// Numbers with bounds are written without exponent.
regex::Id number_regex(regex::Arena& arena, const NumberRange& range);
// Numbers written without exponent that are multiples of a positive decimal.
regex::Id multiple_regex(regex::Arena& arena, const Decimal& divisor);
// All ways to write the value without exponent.
regex::Id same_number_regex(regex::Arena& arena, const Decimal& value);
bool is_multiple(const Decimal& value, const Decimal& divisor);

}  // namespace sluice::grammar::json
