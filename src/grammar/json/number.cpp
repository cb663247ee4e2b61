#include "grammar/json/number.h"

#include "base/error.h"
#include "base/integer_cast.h"

namespace sluice::grammar::json {
namespace {

// Expressions for the digits before and after the decimal point, compared with a bound digit by digit.
class NumberSyntax {
 public:
  explicit NumberSyntax(regex::Arena& arena)
      : arena_(arena),
        digit_(range('0', '9')),
        digits_(arena.repeat(digit_, 0)),
        nonzero_(arena.sequence({digits_, range('1', '9'), digits_})) {}

  regex::Id range(unsigned first, unsigned last) {
    return first > last ? regex::Arena::kNothing : arena_.bytes(regex::ByteSet::range(first, last));
  }
  regex::Id whole() { return arena_.any_of({arena_.byte('0'), arena_.concat(range('1', '9'), digits_)}); }
  regex::Id point(regex::Id fraction) { return arena_.concat(arena_.byte('.'), fraction); }
  regex::Id some_digits() { return arena_.repeat(digit_, 1); }
  regex::Id any_fraction() { return arena_.optional(point(some_digits())); }
  regex::Id nonzero_fraction() { return point(nonzero_); }
  regex::Id zero_fraction() { return arena_.optional(point(arena_.repeat(arena_.byte('0'), 1))); }
  regex::Id exponent() {
    const regex::Id sign = arena_.optional(arena_.any_of({arena_.byte('+'), arena_.byte('-')}));
    return arena_.optional(
        arena_.sequence({arena_.any_of({arena_.byte('e'), arena_.byte('E')}), sign, some_digits()}));
  }

  // Integers above or below one of the same or another length.
  regex::Id whole_above(const std::string& bound) {
    const std::uint32_t size = bound.size();
    const regex::Id longer = arena_.concat(range('1', '9'), arena_.repeat(digit_, size));
    return arena_.any_of({longer, same_length(bound, 0, true)});
  }
  regex::Id whole_below(const std::string& bound) {
    const std::uint32_t size = bound.size();
    regex::Id shorter = regex::Arena::kNothing;
    if (size >= 2)
      shorter = arena_.any_of(
          {arena_.byte('0'), arena_.concat(range('1', '9'), arena_.repeat(digit_, 0, size - 2))});
    return arena_.any_of({shorter, same_length(bound, 0, false)});
  }

  // Fractions, with their point or absent, that are at least or at most the bound's.
  regex::Id fraction_above(const std::string& bound, bool exclusive) {
    if (bound.empty()) return exclusive ? nonzero_fraction() : any_fraction();
    return point(digits_above(bound, 0, exclusive));
  }
  regex::Id fraction_below(const std::string& bound, bool exclusive) {
    if (bound.empty()) return exclusive ? regex::Arena::kNothing : zero_fraction();
    return arena_.optional(point(digits_below(bound, 0, exclusive)));
  }

 private:
  regex::Id same_length(const std::string& bound, std::size_t at, bool above) {
    if (at == bound.size()) return regex::Arena::kNothing;  // equal is not greater
    const unsigned char digit = bound[at];
    // A longer number does not begin with 0.
    const unsigned char lowest = at == 0 && bound.size() > 1 ? '1' : '0';
    const regex::Id differs = above ? range(digit + 1u, '9') : range(lowest, digit - 1u);
    const std::uint32_t rest = bound.size() - at - 1;
    return arena_.any_of({arena_.concat(differs, arena_.repeat(digit_, rest, rest)),
                          arena_.concat(arena_.byte(digit), same_length(bound, at + 1, above))});
  }
  regex::Id digits_above(const std::string& bound, std::size_t at, bool exclusive) {
    if (at == bound.size()) return exclusive ? nonzero_ : digits_;
    const unsigned char digit = bound[at];
    return arena_.any_of({arena_.concat(range(digit + 1u, '9'), digits_),
                          arena_.concat(arena_.byte(digit), digits_above(bound, at + 1, exclusive))});
  }
  // At least one digit.
  regex::Id digits_below(const std::string& bound, std::size_t at, bool exclusive) {
    if (at == bound.size()) return exclusive ? regex::Arena::kNothing : arena_.repeat(arena_.byte('0'), 1);
    const unsigned char digit = bound[at];
    regex::Id rest = digits_below(bound, at + 1, exclusive);
    if (at + 1 < bound.size() || !exclusive) rest = arena_.optional(rest);
    return arena_.any_of(
        {arena_.concat(range('0', digit - 1u), digits_), arena_.concat(arena_.byte(digit), rest)});
  }

  regex::Arena& arena_;
  regex::Id digit_, digits_, nonzero_;
};

// Numbers without sign between bounds that are not negative.
regex::Id magnitude_regex(regex::Arena& arena, const NumberRange& range) {
  NumberSyntax syntax(arena);
  std::vector<regex::Id> conditions;
  regex::Id fraction = syntax.any_fraction();
  if (!range.fractions) fraction = regex::Arena::kEmpty;
  if (!range.integers) fraction = syntax.nonzero_fraction();
  conditions.push_back(arena.concat(syntax.whole(), fraction));
  if (range.low && (!range.low->is_zero() || range.above_low)) {
    const std::string whole = range.low->integer_part();
    conditions.push_back(
        arena.any_of({arena.concat(syntax.whole_above(whole), syntax.any_fraction()),
                      arena.concat(arena.literal(whole),
                                   syntax.fraction_above(range.low->fraction_part(), range.above_low))}));
  }
  if (range.high) {
    const std::string whole = range.high->integer_part();
    conditions.push_back(
        arena.any_of({arena.concat(syntax.whole_below(whole), syntax.any_fraction()),
                      arena.concat(arena.literal(whole),
                                   syntax.fraction_below(range.high->fraction_part(), range.below_high))}));
  }
  return arena.all_of(std::move(conditions));
}

}  // namespace

void NumberRange::raise(const Decimal& bound, bool exclusive) {
  if (low && (bound < *low || (bound == *low && !exclusive))) return;
  low = bound;
  above_low = exclusive;
}

void NumberRange::lower(const Decimal& bound, bool exclusive) {
  if (high && (*high < bound || (bound == *high && !exclusive))) return;
  high = bound;
  below_high = exclusive;
}

bool NumberRange::contains(const Decimal& value) const {
  if (!(value.is_integer() ? integers : fractions)) return false;
  if (low && (value < *low || (above_low && value == *low))) return false;
  return !(high && (*high < value || (below_high && value == *high)));
}

bool NumberRange::empty() const {
  if (!integers && !fractions) return true;
  if (!low || !high) return false;
  if (!fractions) {
    const Decimal first = above_low ? low->floor().plus_one() : low->ceil();
    const Decimal last = below_high ? high->ceil().minus_one() : high->floor();
    return last < first;
  }
  return *high < *low || (*high == *low && (above_low || below_high || !contains(*low)));
}

regex::Id number_regex(regex::Arena& arena, const NumberRange& range) {
  if (range.empty()) return regex::Arena::kNothing;
  NumberSyntax syntax(arena);
  const regex::Id minus = arena.byte('-');
  const Decimal zero;
  if (range.fractions && range.integers && !range.high &&
      (!range.low || (range.low->is_zero() && !range.above_low))) {
    const regex::Id magnitude = arena.sequence({syntax.whole(), syntax.any_fraction(), syntax.exponent()});
    return range.low ? magnitude : arena.concat(arena.optional(minus), magnitude);
  }
  std::vector<regex::Id> choices;
  if (!range.high || *range.high > zero || (range.high->is_zero() && !range.below_high)) {
    NumberRange positive = range;
    positive.raise(zero, false);
    choices.push_back(magnitude_regex(arena, positive));
  }
  if (!range.low || *range.low < zero) {
    NumberRange negative = range;
    negative.lower(zero, true);
    std::swap(negative.low, negative.high);
    std::swap(negative.above_low, negative.below_high);
    if (negative.low) negative.low = negative.low->negated();
    if (negative.high) negative.high = negative.high->negated();
    choices.push_back(arena.concat(minus, magnitude_regex(arena, negative)));
  }
  return arena.any_of(std::move(choices));
}

namespace {

struct Divisor {
  std::uint64_t value;
  std::uint32_t places;
};

Divisor as_divisor(const Decimal& divisor) {
  constexpr std::size_t kMaxDigits = 9;
  const auto zeros = to_size(std::max<std::int64_t>(divisor.exponent(), 0));
  const std::string digits = divisor.digits() + std::string(zeros, '0');
  if (divisor.negative() || divisor.is_zero() || digits.size() > kMaxDigits)
    fail(ErrorKind::unsupported, "multiples of {} are not supported", divisor.text());
  return {std::stoull(digits), static_cast<std::uint32_t>(std::max<std::int64_t>(-divisor.exponent(), 0))};
}

}  // namespace

regex::Id multiple_regex(regex::Arena& arena, const Decimal& divisor) {
  constexpr std::uint64_t kMaxDivisor = 20'000;
  const Divisor d = as_divisor(divisor);
  if (d.value > kMaxDivisor)
    fail(ErrorKind::unsupported, "multiples of {} are not supported", divisor.text());
  const regex::Id digits = arena.multiple_of({.divisor = d.value, .places = d.places});
  return arena.concat(arena.optional(arena.byte('-')), digits);
}

bool is_multiple(const Decimal& value, const Decimal& divisor) {
  const Divisor d = as_divisor(divisor);
  if (-value.exponent() > static_cast<std::int64_t>(d.places)) return false;
  std::uint64_t rest = 0;
  for (const char digit : value.digits())
    rest = (rest * 10 + static_cast<std::uint64_t>(digit - '0')) % d.value;
  for (std::int64_t i = 0; i < value.exponent() + static_cast<std::int64_t>(d.places); ++i)
    rest = rest * 10 % d.value;
  return rest == 0;
}

regex::Id same_number_regex(regex::Arena& arena, const Decimal& value) {
  const regex::Id zeros = arena.repeat(arena.byte('0'), 0);
  const regex::Id text = arena.literal(value.text());
  if (!value.is_integer()) return arena.concat(text, zeros);
  const regex::Id number =
      arena.concat(text, arena.optional(arena.sequence({arena.byte('.'), arena.byte('0'), zeros})));
  return value.is_zero() ? arena.concat(arena.optional(arena.byte('-')), number) : number;
}

}  // namespace sluice::grammar::json
