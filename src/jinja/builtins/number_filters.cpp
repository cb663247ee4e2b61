#include <charconv>
#include <cmath>
#include <optional>

#include "jinja/builtins/builtins.h"
#include "jinja/builtins/parameters.h"
#include "jinja/operators.h"
#include "jinja/unicode.h"

namespace sluice::jinja::builtins {
namespace {

// Drops surrounding blanks and single underscores between digits; nothing if there is another underscore.
std::optional<std::string> number_text(std::string_view text) {
  text = strip(text, nullptr, true, true);
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      result += text[i];
      continue;
    }
    auto digit = [&](std::size_t at) {
      return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at]));
    };
    if (i == 0 || !digit(i - 1) || !digit(i + 1)) return std::nullopt;
  }
  return result;
}

std::optional<Value> parse_integer(std::string_view source, std::int64_t base) {
  auto cleaned = number_text(source);
  if (!cleaned || base < 0 || base == 1 || base > 36) return std::nullopt;
  std::string_view text = *cleaned;
  bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  if (text.size() > 2 && text[0] == '0') {
    char kind = static_cast<char>(text[1] | 0x20);
    int prefix = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
    if (prefix && (base == prefix || base == 0)) {
      text.remove_prefix(2);
      base = prefix;
    }
  }
  if (base == 0) base = 10;
  if (text.empty() || text[0] == '-') return std::nullopt;
  std::uint64_t magnitude = 0;
  auto result = std::from_chars(text.data(), text.data() + text.size(), magnitude, static_cast<int>(base));
  if (result.ptr != text.data() + text.size()) return std::nullopt;
  if (result.ec != std::errc() && base != 10) fault("the integer {} does not fit in 64 bits", text);
  const std::string digits = base == 10 ? std::string(text) : std::to_string(magnitude);
  return make_integer((negative ? "-" : "") + digits);
}

std::optional<double> parse_real(std::string_view source) {
  auto cleaned = number_text(source);
  if (!cleaned) return std::nullopt;
  std::string_view text = *cleaned;
  bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  if (text.empty() || text[0] == '-' || text.back() == ')') return std::nullopt;
  double value = 0;
  auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ptr != text.data() + text.size()) return std::nullopt;
  if (result.ec == std::errc::result_out_of_range) value = std::strtod(std::string(text).c_str(), nullptr);
  return negative ? -value : value;
}

std::optional<double> to_real(const Value& value) {
  require_defined(value);
  if (value.is_number()) return value.real();
  if (value.is_big_integer()) return to_double(value.big_integer());
  return value.is_text() ? parse_real(value.text()) : std::nullopt;
}

Value int_filter(Runtime&, const Value& value, const Call& call) {
  Parameters given(call, {"default", "base"});
  Value missing = given.find(0) ? given.value(0) : Value(std::int64_t{0});
  if (value.is_integer()) return value.integer();
  if (value.is_big_integer()) return value;
  if (value.is_text())
    if (auto parsed = parse_integer(value.text(), given.integer(1, 10))) return *parsed;
  auto real = to_real(value);
  if (!real || std::isnan(*real) || std::isinf(*real)) return missing;
  return make_integer(*real);
}

Value float_filter(Runtime&, const Value& value, const Call& call) {
  Parameters given(call, {"default"});
  if (auto real = to_real(value)) return *real;
  return given.find(0) ? given.value(0) : Value(0.0);
}

Value abs_filter(Runtime&, const Value& value, const Call&) {
  require_defined(value);
  if (value.is_real()) return std::fabs(value.real());
  if (value.is_big_integer()) return value.big_integer().digits->starts_with('-') ? negate(value) : value;
  if (!value.is_integer()) fault("bad operand type for abs(): '{}'", type_name(value));
  return value.integer() < 0 ? negate(value) : Value(value.integer());
}

Value round_filter(Runtime& runtime, const Value& value, const Call& call) {
  Parameters given(call, {"precision", "method"});
  require_defined(value);
  if (!value.is_number()) fault("type {} doesn't define __round__ method", type_name(value));
  std::int64_t precision = given.integer(0, 0);
  std::string method = given.find(1) ? given.text(1) : "common";
  if (method == "ceil" || method == "floor") {
    Value scale = binary(runtime.budget(), Binary::power, std::int64_t{10}, precision);
    double scaled = value.real() * scale.real();
    return (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale.real();
  }
  if (method != "common") fault("method must be common, ceil or floor");
  if (value.is_integer() && precision >= 0) return value.integer();
  if (precision < 0) {
    double scale = std::pow(10.0, static_cast<double>(-precision));
    double rounded = std::nearbyint(value.real() / scale) * scale;
    return value.is_integer() ? Value(static_cast<std::int64_t>(rounded)) : Value(rounded);
  }
  if (precision > 300 || !std::isfinite(value.real())) return value;
  return std::strtod(fmt::format("{:.{}f}", value.real(), precision).c_str(), nullptr);
}

}  // namespace

const Builtins& number_filters() {
  static const Builtins kFilters = {
      {"int", int_filter},
      {"float", float_filter},
      {"abs", abs_filter},
      {"round", round_filter},
  };
  return kFilters;
}

}  // namespace sluice::jinja::builtins
