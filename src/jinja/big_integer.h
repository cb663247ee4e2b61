// Integers beyond 64 bits, as in Python: they can be read, printed, compared and negated, but not computed
// with.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace sluice::jinja {

class Value;

// An optional minus sign, and digits that do not begin with 0. Always beyond the range of int64.
struct BigInteger {
  std::shared_ptr<const std::string> digits;
};

// The integer of decimal digits with an optional sign: an int64 if it fits.
Value make_integer(std::string_view digits);
// A double without its fraction.
Value make_integer(double truncated);

bool is_less(const BigInteger& a, const BigInteger& b);
// Negative, 0 or positive if `a` is less than, equal to or greater than `b`, which is not NaN.
int compare(const BigInteger& a, double b);
double to_double(const BigInteger& value);
Value negate(const BigInteger& value);

}  // namespace sluice::jinja
