// Exact decimal numbers as in JSON: bounds like 0.1 have no exact binary value.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::grammar::json {

class Decimal {
 public:
  Decimal() = default;
  explicit Decimal(std::int64_t value) : Decimal(parse(std::to_string(value))) {}
  // The text must be a JSON number.
  static Decimal parse(std::string_view text);

  bool negative() const { return negative_; }
  bool is_zero() const { return digits_.empty(); }
  bool is_integer() const { return exponent_ >= 0; }
  // The value is digits * 10^exponent; the digits neither begin nor end with 0, and zero has no digits.
  const std::string& digits() const { return digits_; }
  std::int64_t exponent() const { return exponent_; }
  Decimal negated() const;
  Decimal floor() const;
  Decimal ceil() const;
  Decimal plus_one() const;  // of an integer
  Decimal minus_one() const { return negated().plus_one().negated(); }
  // Of the absolute value: "0" or digits without leading zeros, and "" or digits without trailing zeros.
  std::string integer_part() const;
  std::string fraction_part() const;
  std::string text() const;
  // -1 if it is not an integer from 0 to `max`.
  std::int64_t as_count(std::int64_t max) const;

  friend bool operator==(const Decimal&, const Decimal&) = default;
  friend std::strong_ordering operator<=>(const Decimal& a, const Decimal& b);

 private:
  void normalize();

  bool negative_ = false;
  std::string digits_;
  std::int64_t exponent_ = 0;
};

}  // namespace sluice::grammar::json
