#include "jinja/big_integer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "jinja/value.h"

namespace sluice::jinja {

namespace {

constexpr std::size_t kMostDigits = 4300;  // Python reads and prints at most this many

bool is_negative(std::string_view digits) {
  return digits.starts_with('-');
}

int sign_of(bool less) {
  return less ? -1 : 1;
}

// As compare(), for digits without leading zeros.
int compare_digits(std::string_view a, std::string_view b) {
  if (a == b) return 0;
  if (is_negative(a) != is_negative(b)) return sign_of(is_negative(a));
  const bool smaller = a.size() != b.size() ? a.size() < b.size() : a < b;
  return sign_of(smaller != is_negative(a));
}

}  // namespace

Value make_integer(std::string_view digits) {
  const bool negative = is_negative(digits);
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.empty()) return std::int64_t{0};
  if (digits.size() > kMostDigits)
    fault("an integer has {} digits; {} are allowed", digits.size(), kMostDigits);
  std::string text = (negative ? "-" : "") + std::string(digits);
  std::int64_t small = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), small);
  if (read.ec == std::errc()) return small;
  return BigInteger{std::make_shared<const std::string>(std::move(text))};
}

Value make_integer(double truncated) {
  return make_integer(fmt::format("{:.0f}", std::trunc(truncated)));
}

bool is_less(const BigInteger& a, const BigInteger& b) {
  return compare_digits(*a.digits, *b.digits) < 0;
}

int compare(const BigInteger& a, double b) {
  if (std::isinf(b)) return sign_of(b > 0);
  // Fractions do not matter: numbers this large have none.
  return compare_digits(*a.digits, fmt::format("{:.0f}", std::trunc(b)));
}

double to_double(const BigInteger& value) {
  return std::strtod(value.digits->c_str(), nullptr);
}

Value negate(const BigInteger& value) {
  const std::string& digits = *value.digits;
  return make_integer(is_negative(digits) ? digits.substr(1) : "-" + digits);
}

}  // namespace sluice::jinja
