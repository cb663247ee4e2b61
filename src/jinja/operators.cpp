#include "jinja/operators.h"

#include <algorithm>
#include <cmath>

#include "base/integer_cast.h"
#include "jinja/builtins/format.h"
#include "jinja/repr.h"
#include "jinja/unicode.h"

namespace sluice::jinja {
namespace {

bool same_kind(const Sequence& a, const Sequence& b) {
  return a.kind == b.kind;
}

bool equal_items(Budget& budget, const Values& a, const Values& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(),
                    [&](const Value& x, const Value& y) { return identical(x, y) || equal(budget, x, y); });
}

bool equal_dicts(Budget& budget, const Dict& a, const Dict& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a.entries()) {
    const Value* other = b.find(key);
    if (other == nullptr || !(identical(value, *other) || equal(budget, value, *other))) return false;
  }
  return true;
}

[[noreturn]] void unsupported(const char* symbol, const Value& a, const Value& b) {
  fault("unsupported operand type(s) for {}: '{}' and '{}'", symbol, type_name(a), type_name(b));
}

[[noreturn]] void overflow() {
  fault("integer result does not fit in 64 bits");
}

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  if (b == 0) fault("integer division or modulo by zero");
  if (b == -1) {
    std::int64_t result = 0;
    if (__builtin_sub_overflow(std::int64_t{0}, a, &result)) overflow();
    return result;
  }
  std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

std::int64_t floor_remainder(std::int64_t a, std::int64_t b) {
  if (b == 0) fault("integer modulo by zero");
  if (b == -1) return 0;
  std::int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

Value integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) fault("0.0 cannot be raised to a negative power");
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  std::int64_t result = 1;
  bool lost = false;  // the square of the base overflowed: an error only if it is needed again
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1)
      if (lost || __builtin_mul_overflow(result, base, &result)) overflow();
    lost = lost || __builtin_mul_overflow(base, base, &base);
  }
  return result;
}

Value integer_binary(Binary operation, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflowed = false;
  switch (operation) {
    case Binary::add:
      overflowed = __builtin_add_overflow(a, b, &result);
      break;
    case Binary::subtract:
      overflowed = __builtin_sub_overflow(a, b, &result);
      break;
    case Binary::multiply:
      overflowed = __builtin_mul_overflow(a, b, &result);
      break;
    case Binary::divide:
      if (b == 0) fault("division by zero");
      return static_cast<double>(a) / static_cast<double>(b);
    case Binary::floor_divide:
      return floor_quotient(a, b);
    case Binary::modulo:
      return floor_remainder(a, b);
    case Binary::power:
      return integer_power(a, b);
  }
  if (overflowed) overflow();
  return result;
}

double real_modulo(double a, double b) {
  double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(0.0, b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

double real_floor_divide(double a, double b) {
  double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder != 0 && (b < 0) != (remainder < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

double real_power(double a, double b) {
  if (a == 0 && b < 0) fault("0.0 cannot be raised to a negative power");
  if (a < 0 && std::isfinite(b) && b != std::floor(b)) fault("complex numbers are not supported");
  double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b))
    fault("(34, 'Numerical result out of range')");
  return result;
}

Value real_binary(Binary operation, double a, double b) {
  bool divides =
      operation == Binary::divide || operation == Binary::floor_divide || operation == Binary::modulo;
  if (divides && b == 0) fault("float division by zero");
  switch (operation) {
    case Binary::add:
      return a + b;
    case Binary::subtract:
      return a - b;
    case Binary::multiply:
      return a * b;
    case Binary::divide:
      return a / b;
    case Binary::floor_divide:
      return real_floor_divide(a, b);
    case Binary::modulo:
      return real_modulo(a, b);
    case Binary::power:
      return real_power(a, b);
  }
  return a;
}

Value add(Budget& budget, const Value& a, const Value& b) {
  if (a.is_text() && b.is_text()) {
    bool markup = a.is_markup() || b.is_markup();
    Value left = markup ? escape(budget, a) : a, right = markup ? escape(budget, b) : b;
    budget.grow(left.text().size() + right.text().size());
    return Value(left.text() + right.text(), markup);
  }
  if ((is_list(a) && is_list(b)) || (is_tuple(a) && is_tuple(b))) {
    Values items = a.sequence().items;
    const Values& more = b.sequence().items;
    budget.grow((items.size() + more.size()) * sizeof(Value));
    items.insert(items.end(), more.begin(), more.end());
    return make_sequence(a.sequence().kind, std::move(items));
  }
  if (a.is_text()) fault("can only concatenate str (not \"{}\") to str", type_name(b));
  if (is_list(a)) fault("can only concatenate list (not \"{}\") to list", type_name(b));
  unsupported("+", a, b);
}

Value repeat(Budget& budget, const Value& value, std::int64_t count) {
  std::size_t times = count < 0 ? 0 : to_size(count);
  std::size_t size = value.is_text() ? value.text().size() : value.sequence().items.size() * sizeof(Value);
  std::size_t total = 0;
  if (__builtin_mul_overflow(size, times, &total)) total = SIZE_MAX / 2;
  budget.grow(total);
  if (size == 0) times = 0;
  if (value.is_text()) {
    std::string result;
    result.reserve(total);
    for (std::size_t i = 0; i < times; ++i) result += value.text();
    return Value(std::move(result), value.is_markup());
  }
  const Values& items = value.sequence().items;
  Values result;
  result.reserve(items.size() * times);
  for (std::size_t i = 0; i < times; ++i) result.insert(result.end(), items.begin(), items.end());
  return make_sequence(value.sequence().kind, std::move(result));
}

bool repeatable(const Value& value) {
  return value.is_text() || is_list(value) || is_tuple(value);
}

bool less_items(Budget& budget, const Values& a, const Values& b) {
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (!equal(budget, a[i], b[i])) return less(budget, a[i], b[i]);
  return a.size() < b.size();
}

bool is_nan(const Value& value) {
  return value.is_real() && std::isnan(value.real());
}

// Compares with any other number; all integers of 64 bits are nearer to zero.
bool is_less(const BigInteger& a, const Value& b) {
  if (b.is_integer()) return a.digits->starts_with('-');
  return !is_nan(b) && compare(a, b.real()) < 0;
}

bool is_greater(const BigInteger& a, const Value& b) {
  if (b.is_integer()) return !a.digits->starts_with('-');
  return !is_nan(b) && compare(a, b.real()) > 0;
}

// `symbol` is the operator in the template; all comparisons are reduced to "less".
bool ordered(Budget& budget, const char* symbol, const Value& a, const Value& b, bool swapped) {
  budget.step();
  require_defined(a);
  require_defined(b);
  const Value &x = swapped ? b : a, &y = swapped ? a : b;
  if (a.is_big_integer() && b.is_big_integer()) return is_less(x.big_integer(), y.big_integer());
  if (x.is_big_integer() && y.is_number()) return is_less(x.big_integer(), y);
  if (y.is_big_integer() && x.is_number()) return is_greater(y.big_integer(), x);
  if (a.is_integer() && b.is_integer()) return x.integer() < y.integer();
  if (a.is_number() && b.is_number()) return x.real() < y.real();
  if (a.is_text() && b.is_text()) return x.text() < y.text();
  if ((is_list(a) && is_list(b)) || (is_tuple(a) && is_tuple(b)))
    return less_items(budget, x.sequence().items, y.sequence().items);
  fault("'{}' not supported between instances of '{}' and '{}'", symbol, type_name(a), type_name(b));
}

bool comparable_as_number(const Value& a, const Value& b) {
  return a.is_number() && b.is_number();
}

}  // namespace

bool identical(const Value& a, const Value& b) {
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case Type::none:
      return true;
    case Type::undefined:
      return &a.undefined_message() == &b.undefined_message();
    case Type::boolean:
      return a.boolean() == b.boolean();
    case Type::integer:
      return a.integer() == b.integer();
    case Type::big_integer:
      return *a.big_integer().digits == *b.big_integer().digits;
    case Type::real:
      return a.real() == b.real();
    case Type::text:
      return a.text() == b.text();
    case Type::sequence:
      return &a.sequence() == &b.sequence();
    case Type::dict:
      return &a.dict() == &b.dict();
    case Type::object:
      return a.object() == b.object();
  }
  return false;
}

bool equal(Budget& budget, const Value& a, const Value& b) {
  budget.step();
  if (a.is_big_integer() && b.is_real()) return !is_nan(b) && compare(a.big_integer(), b.real()) == 0;
  if (a.is_real() && b.is_big_integer()) return equal(budget, b, a);
  if (a.is_integer() && b.is_integer()) return a.integer() == b.integer();
  if (comparable_as_number(a, b)) return a.real() == b.real();
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case Type::undefined:
      return true;
    case Type::sequence:
      if (!same_kind(a.sequence(), b.sequence())) return false;
      if (a.sequence().kind == SequenceKind::iterator || a.sequence().kind == SequenceKind::values)
        return identical(a, b);
      return equal_items(budget, a.sequence().items, b.sequence().items);
    case Type::dict:
      return equal_dicts(budget, a.dict(), b.dict());
    default:
      return identical(a, b);
  }
}

bool less(Budget& budget, const Value& a, const Value& b) {
  return ordered(budget, "<", a, b, false);
}

bool compare(Budget& budget, Comparison comparison, const Value& a, const Value& b) {
  auto unordered = [&] {  // NaN compares false with everything, so "not less" is not "greater or equal"
    return is_nan(a) || is_nan(b);
  };
  switch (comparison) {
    case Comparison::equal:
      return equal(budget, a, b);
    case Comparison::not_equal:
      return !equal(budget, a, b);
    case Comparison::less:
      return ordered(budget, "<", a, b, false);
    case Comparison::greater:
      return ordered(budget, ">", a, b, true);
    case Comparison::less_equal:
      return !ordered(budget, "<=", a, b, true) && !unordered();
    case Comparison::greater_equal:
      return !ordered(budget, ">=", a, b, false) && !unordered();
    case Comparison::in:
      return contains(budget, b, a);
    case Comparison::not_in:
      return !contains(budget, b, a);
  }
  return false;
}

bool contains(Budget& budget, const Value& container, const Value& item) {
  if (container.is_text()) {
    if (!item.is_text()) fault("'in <string>' requires string as left operand, not {}", type_name(item));
    budget.step(container.text().size() / 64);
    return container.text().find(item.text()) != std::string::npos;
  }
  if (container.is_dict()) return container.dict().find(item) != nullptr;
  if (container.is_undefined()) return false;
  if (!container.is_sequence()) fault("argument of type '{}' is not iterable", type_name(container));
  for (const Value& candidate : iterate(budget, container))
    if (identical(item, candidate) || equal(budget, item, candidate)) return true;
  return false;
}

Value binary(Budget& budget, Binary operation, const Value& a, const Value& b) {
  constexpr const char* kSymbols[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};
  if (operation == Binary::modulo && a.is_text()) return builtins::percent_format(budget, a, b);
  require_defined(a);
  require_defined(b);
  const bool numbers = (a.is_number() || a.is_big_integer()) && (b.is_number() || b.is_big_integer());
  if (numbers && (a.is_big_integer() || b.is_big_integer())) overflow();
  if (a.is_integer() && b.is_integer()) return integer_binary(operation, a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return real_binary(operation, a.real(), b.real());
  if (operation == Binary::add) return add(budget, a, b);
  if (operation == Binary::multiply && repeatable(a) && b.is_integer()) return repeat(budget, a, b.integer());
  if (operation == Binary::multiply && repeatable(b) && a.is_integer()) return repeat(budget, b, a.integer());
  unsupported(kSymbols[static_cast<int>(operation)], a, b);
}

Value negate(const Value& value) {
  require_defined(value);
  if (value.is_integer()) return integer_binary(Binary::subtract, 0, value.integer());
  if (value.is_real()) return -value.real();
  if (value.is_big_integer()) return negate(value.big_integer());
  fault("bad operand type for unary -: '{}'", type_name(value));
}

Value escape(Budget& budget, const Value& value) {
  if (value.is_markup()) return value;
  std::string result;
  for (char c : str(budget, value)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '\'':
        result += "&#39;";
        break;
      case '"':
        result += "&#34;";
        break;
      default:
        result += c;
    }
  }
  budget.grow(result.size());
  return Value(std::move(result), true);
}

}  // namespace sluice::jinja
