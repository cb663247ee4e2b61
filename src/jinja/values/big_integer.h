// Integers beyond 64 bits, as Python has them: read, printed, compared and negated. Nothing else is computed
// with them.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace sluice::jinja {

class Value;

// A minus sign or none, and digits that do not begin with 0. Never what 64 bits with a sign hold.
struct BigInteger {
  std::shared_ptr<const std::string> digits;
};

// The integer that decimal digits mean, with a sign or without: an int64 where it fits.
Value make_integer(std::string_view digits);
// A real number without its fraction.
Value make_integer(double truncated);

bool is_less(const BigInteger& a, const BigInteger& b);
// Below 0, 0 or above 0 as a number is less than, equal to or greater than another; that one is no NaN.
int compare(const BigInteger& a, double b);
double to_double(const BigInteger& value);
Value negate(const BigInteger& value);

}  // namespace sluice::jinja
