#include "grammar/json/decimal.h"

#include <algorithm>

#include "base/error.h"
#include "base/integer_cast.h"

namespace sluice::grammar::json {
namespace {

constexpr std::int64_t kMaxExponent = 400;  // beyond the range of a double

std::strong_ordering compare_magnitudes(const Decimal& a, const Decimal& b) {
  const std::string left = a.integer_part(), right = b.integer_part();
  if (left.size() != right.size()) return left.size() <=> right.size();
  if (left != right) return left.compare(right) <=> 0;
  return a.fraction_part().compare(b.fraction_part()) <=> 0;
}

}  // namespace

void Decimal::normalize() {
  digits_.erase(0, std::min(digits_.find_first_not_of('0'), digits_.size()));
  while (!digits_.empty() && digits_.back() == '0') {
    digits_.pop_back();
    ++exponent_;
  }
  if (digits_.empty()) {
    exponent_ = 0;
    negative_ = false;
  }
}

Decimal Decimal::parse(std::string_view text) {
  Decimal result;
  std::size_t at = 0;
  if (!text.empty() && text[0] == '-') {
    result.negative_ = true;
    at = 1;
  }
  bool fraction = false;
  for (; at < text.size() && text[at] != 'e' && text[at] != 'E'; ++at) {
    if (text[at] == '.') {
      fraction = true;
      continue;
    }
    result.digits_ += text[at];
    if (fraction) --result.exponent_;
  }
  if (at < text.size()) {
    std::string_view exponent = text.substr(at + 1);
    const bool negative = exponent.starts_with('-');
    if (negative || exponent.starts_with('+')) exponent.remove_prefix(1);
    std::int64_t value = 0;
    for (const char digit : exponent) value = std::min<std::int64_t>(10 * value + (digit - '0'), 1'000'000);
    result.exponent_ += negative ? -value : value;
  }
  result.normalize();
  const std::int64_t size = std::ssize(result.digits_) + result.exponent_;
  if (result.exponent_ < -kMaxExponent || size > kMaxExponent)
    fail(ErrorKind::unsupported, "schema: the number {} is out of range", text.substr(0, 40));
  return result;
}

Decimal Decimal::negated() const {
  Decimal result = *this;
  if (!result.is_zero()) result.negative_ = !result.negative_;
  return result;
}

std::string Decimal::integer_part() const {
  if (exponent_ >= 0) return is_zero() ? "0" : digits_ + std::string(to_size(exponent_), '0');
  const auto places = to_size(-exponent_);
  return digits_.size() <= places ? "0" : digits_.substr(0, digits_.size() - places);
}

std::string Decimal::fraction_part() const {
  if (exponent_ >= 0) return "";
  const auto places = to_size(-exponent_);
  if (digits_.size() >= places) return digits_.substr(digits_.size() - places);
  return std::string(places - digits_.size(), '0') + digits_;
}

std::string Decimal::text() const {
  const std::string fraction = fraction_part();
  return (negative_ ? "-" : "") + integer_part() + (fraction.empty() ? "" : "." + fraction);
}

Decimal Decimal::floor() const {
  if (is_integer()) return *this;
  const Decimal whole = parse(integer_part());
  return negative_ ? whole.plus_one().negated() : whole;
}

Decimal Decimal::ceil() const {
  return negated().floor().negated();
}

Decimal Decimal::plus_one() const {
  std::string digits = integer_part();
  if (negative_) {  // the magnitude decreases
    std::size_t i = digits.size();
    while (digits[--i] == '0') digits[i] = '9';
    --digits[i];
    return parse(digits).negated();
  }
  std::size_t i = digits.size();
  while (i > 0 && digits[i - 1] == '9') digits[--i] = '0';
  if (i == 0) return parse("1" + digits);
  ++digits[i - 1];
  return parse(digits);
}

std::int64_t Decimal::as_count(std::int64_t max) const {
  if (negative_ || !is_integer()) return -1;
  const std::string text = integer_part();
  if (text.size() > 18) return max;
  return std::min<std::int64_t>(std::stoll(text), max);
}

std::strong_ordering operator<=>(const Decimal& a, const Decimal& b) {
  if (a.negative() != b.negative())
    return a.negative() ? std::strong_ordering::less : std::strong_ordering::greater;
  const std::strong_ordering order = compare_magnitudes(a, b);
  return a.negative() ? 0 <=> order : order;
}

}  // namespace sluice::grammar::json
