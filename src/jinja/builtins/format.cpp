#include "jinja/builtins/format.h"

#include <charconv>
#include <cmath>

#include "base/integer_cast.h"
#include "jinja/operators.h"
#include "jinja/repr.h"
#include "jinja/unicode.h"

namespace sluice::jinja::builtins {
namespace {

// Far beyond any real layout, and small enough that padding stays cheap.
constexpr int kMaxWidth = 10'000;

struct Spec {
  std::string fill = " ";
  char align = '\0';
  char sign = '\0';
  bool alternate = false, grouped = false;
  int width = 0, precision = -1;
  char type = '\0';
};

int number(std::string_view text, std::size_t& i) {
  int value = 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
    value = value * 10 + (text[i] - '0');
    if (value > kMaxWidth) fault("a format is wider than {} characters", kMaxWidth);
  }
  return value;
}

std::string pad(const std::string& text, const Spec& spec, char default_align) {
  auto missing = spec.width - to_int(count_code_points(text));
  if (missing <= 0) return text;
  char align = spec.align ? spec.align : default_align;
  int left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  std::string before, after;
  for (int i = 0; i < missing; ++i) (i < left ? before : after) += spec.fill;
  if (align != '=') return before + text + after;
  std::size_t digits = !text.empty() && (text[0] == '-' || text[0] == '+' || text[0] == ' ') ? 1 : 0;
  return text.substr(0, digits) + before + text.substr(digits);
}

std::string digits_of(std::int64_t value, const Spec& spec) {
  std::uint64_t magnitude =
      value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  switch (spec.type) {
    case 'x':
      return fmt::format("{}{:x}", spec.alternate ? "0x" : "", magnitude);
    case 'X':
      return fmt::format("{}{:X}", spec.alternate ? "0X" : "", magnitude);
    case 'o':
      return fmt::format("{}{:o}", spec.alternate ? "0o" : "", magnitude);
    case 'b':
      return fmt::format("{}{:b}", spec.alternate ? "0b" : "", magnitude);
    default:
      return std::to_string(magnitude);
  }
}

std::string digits_of(double value, const Spec& spec) {
  double magnitude = std::fabs(value);
  int precision = spec.precision < 0 ? 6 : spec.precision;
  switch (spec.type) {
    case 'f':
    case 'F':
      return fmt::format("{:.{}f}", magnitude, precision);
    case 'e':
      return fmt::format("{:.{}e}", magnitude, precision);
    case 'E':
      return fmt::format("{:.{}E}", magnitude, precision);
    case 'g':
      return fmt::format("{:.{}g}", magnitude, precision == 0 ? 1 : precision);
    case 'G':
      return fmt::format("{:.{}G}", magnitude, precision == 0 ? 1 : precision);
    case '%':
      return fmt::format("{:.{}f}%", magnitude * 100, precision);
    default:
      return spec.precision < 0 ? repr(magnitude) : fmt::format("{:.{}g}", magnitude, std::max(precision, 1));
  }
}

std::string group_thousands(std::string digits) {
  std::size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
  for (std::size_t i = whole; i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string digits_of(const BigInteger& value, const Spec& spec) {
  if (spec.type != '\0' && spec.type != 'd') fault("the integer {} does not fit in 64 bits", *value.digits);
  return value.digits->substr(value.digits->starts_with('-') ? 1 : 0);
}

std::string format_number(const Value& value, const Spec& spec) {
  bool real_type = spec.type != '\0' && std::string_view("fFeEgG%").find(spec.type) != std::string_view::npos;
  bool is_real = value.is_real() || real_type;
  bool negative = false;
  std::string digits;
  if (value.is_big_integer()) {
    const BigInteger& big = value.big_integer();
    negative = big.digits->starts_with('-');
    digits = is_real ? digits_of(to_double(big), spec) : digits_of(big, spec);
  } else {
    negative = is_real ? std::signbit(value.real()) : value.integer() < 0;
    digits = is_real ? digits_of(value.real(), spec) : digits_of(value.integer(), spec);
  }
  if (spec.grouped) digits = group_thousands(std::move(digits));
  if (negative) return "-" + digits;
  return spec.sign == '+' || spec.sign == ' ' ? spec.sign + digits : digits;
}

std::string cut(const std::string& text, int precision) {
  if (precision < 0) return text;
  auto offsets = code_point_offsets(text);
  return text.substr(0, offsets[std::min<std::size_t>(to_size(precision), offsets.size() - 1)]);
}

class Percent {
 public:
  Percent(Budget& budget, const Value& format, const Value& arguments)
      : budget_(budget), format_(format), text_(format.text()), arguments_(arguments) {}

  Value run() {
    std::string out;
    for (std::size_t i = 0; i < text_.size();) {
      if (text_[i] != '%')
        out += text_[i++];
      else
        out += directive(++i);
      if (out.size() > budget_.limits().output_bytes) budget_.grow(out.size());
    }
    bool unused = is_tuple(arguments_) ? next_ < arguments_.sequence().items.size()
                                       : next_ == 0 && !arguments_.is_dict() && !is_list(arguments_);
    if (unused) fault("not all arguments converted during string formatting");
    return Value(std::move(out), format_.is_markup());
  }

 private:
  Value next() {
    bool many = is_tuple(arguments_);
    std::size_t count = many ? arguments_.sequence().items.size() : 1;
    if (next_ >= count) fault("not enough arguments for format string");
    ++next_;
    return many ? arguments_.sequence().items[next_ - 1] : arguments_;
  }

  Value named(std::size_t& i) {
    std::size_t close = text_.find(')', i);
    if (close == text_.npos) fault("incomplete format key");
    if (!arguments_.is_dict()) fault("format requires a mapping");
    std::string key = text_.substr(i, close - i);
    const Value* value = arguments_.dict().find(std::string_view(key));
    if (value == nullptr) fault("the mapping of a format has no key {}", repr(key));
    i = close + 1;
    return *value;
  }

  std::string directive(std::size_t& i) {
    std::optional<Value> value;
    if (i < text_.size() && text_[i] == '(') value = named(++i);
    Spec spec;
    for (; i < text_.size() && std::string_view("-+ 0#").find(text_[i]) != std::string_view::npos; ++i) {
      if (text_[i] == '-') spec.align = '<';
      if (text_[i] == '0' && spec.align != '<') spec.fill = "0", spec.align = '=';
      if (text_[i] == '+' || (text_[i] == ' ' && spec.sign == '\0')) spec.sign = text_[i];
      if (text_[i] == '#') spec.alternate = true;
    }
    if (spec.align == '<') spec.fill = " ";
    spec.width = number(text_, i);
    if (i < text_.size() && text_[i] == '.') spec.precision = number(text_, ++i);
    if (i >= text_.size()) fault("incomplete format");
    spec.type = text_[i++];
    if (spec.type == '%') return "%";
    return convert(value ? *value : next(), spec);
  }

  std::string convert(const Value& value, Spec spec) {
    switch (spec.type) {
      case 's':
      case 'r': {
        std::string text = spec.type == 's' ? str(budget_, value) : repr(budget_, value);
        if (format_.is_markup()) text = escape(budget_, value.is_markup() ? value : Value(text)).text();
        spec.fill = " ";
        if (spec.align == '=') spec.align = '>';
        return pad(cut(text, spec.precision), spec, '>');
      }
      case 'd':
      case 'i':
      case 'u':
        spec.type = 'd';
        if (value.is_real()) return convert(make_integer(finite(value.real())), spec);
        [[fallthrough]];
      case 'x':
      case 'X':
      case 'o':
        if (!value.is_integer() && !value.is_big_integer())
          fault("%{} format: an integer is required, not {}", spec.type, type_name(value));
        return pad(format_number(value, spec), spec, '>');
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        require_defined(value);
        if (!value.is_number() && !value.is_big_integer())
          fault("must be real number, not {}", type_name(value));
        return pad(format_number(value, spec), spec, '>');
      default:
        fault("unsupported format character '{}'", spec.type);
    }
  }

  static double finite(double value) {
    if (!std::isfinite(value))
      fault("cannot convert float {} to integer", std::isnan(value) ? "NaN" : "infinity");
    return value;
  }

  Budget& budget_;
  const Value& format_;
  const std::string& text_;
  const Value& arguments_;
  std::size_t next_ = 0;
};

Spec parse_spec(std::string_view text) {
  Spec spec;
  std::size_t i = 0;
  auto is_align = [&](std::size_t at) {
    return at < text.size() && std::string_view("<>^=").find(text[at]) != std::string_view::npos;
  };
  std::size_t second = 0;
  if (!text.empty()) next_code_point(text, second);
  if (second > 0 && is_align(second)) {
    spec.fill = text.substr(0, second);
    spec.align = text[second];
    i = second + 1;
  } else if (is_align(0)) {
    spec.align = text[i++];
  }
  if (i < text.size() && (text[i] == '+' || text[i] == '-' || text[i] == ' ')) spec.sign = text[i++];
  if (i < text.size() && text[i] == '#') spec.alternate = (++i, true);
  if (i < text.size() && text[i] == '0' && spec.align == '\0') spec.fill = "0", spec.align = '=';
  spec.width = number(text, i);
  if (i < text.size() && text[i] == ',') spec.grouped = (++i, true);
  if (i < text.size() && text[i] == '.') spec.precision = number(text, ++i);
  if (i < text.size()) spec.type = text[i++];
  if (i != text.size()) fault("Invalid format specifier '{}'", text);
  return spec;
}

std::string apply_spec(Budget& budget, const Value& value, std::string_view text) {
  if (text.empty()) return str(budget, value);
  Spec spec = parse_spec(text);
  if (value.is_big_integer() || (value.is_number() && !(value.is_boolean() && spec.type == '\0'))) {
    if (spec.type == 's' || (value.is_real() && spec.type != '\0' &&
                             std::string_view("dxXob").find(spec.type) != std::string_view::npos))
      fault("Unknown format code '{}' for object of type '{}'", spec.type, type_name(value));
    return pad(format_number(value, spec), spec, '>');
  }
  if (!value.is_text() && !value.is_boolean())
    fault("unsupported format string passed to {}.__format__", type_name(value));
  if (spec.type != '\0' && spec.type != 's')
    fault("Unknown format code '{}' for object of type 'str'", spec.type);
  if (spec.align == '=') fault("'=' alignment not allowed in string format specifier");
  return pad(cut(str(budget, value), spec.precision), spec, '<');
}

class Brace {
 public:
  Brace(Runtime& runtime, const Value& format, const Call& call)
      : runtime_(runtime), format_(format), call_(call) {}

  Value run() {
    const std::string& text = format_.text();
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
      char c = text[i++];
      bool doubled = i < text.size() && text[i] == c;
      if (c == '{' && !doubled) {
        out += field(text, i);
      } else if (c == '}' && !doubled) {
        fault("Single '}}' encountered in format string");
      } else {
        out += c;
        if (c == '{' || c == '}') ++i;
      }
      if (out.size() > runtime_.budget().limits().output_bytes) runtime_.budget().grow(out.size());
    }
    return Value(std::move(out), format_.is_markup());
  }

 private:
  std::string field(const std::string& text, std::size_t& i) {
    std::size_t close = text.find('}', i);
    if (close == text.npos) fault("expected '}}' before end of string");
    std::string_view body = std::string_view(text).substr(i, close - i);
    if (body.find('{') != body.npos) fault("nested fields in a format string are not supported");
    i = close + 1;
    std::size_t colon = body.find(':');
    std::string_view spec = colon == body.npos ? "" : body.substr(colon + 1);
    std::string_view name = body.substr(0, colon);
    char conversion = name.size() >= 2 && name[name.size() - 2] == '!' ? name.back() : '\0';
    if (conversion) name.remove_suffix(2);
    Value value = lookup(name);
    Budget& budget = runtime_.budget();
    if (conversion == 'r') value = Value(repr(budget, value));
    if (conversion == 's') value = Value(str(budget, value));
    std::string result = apply_spec(budget, value, spec);
    return format_.is_markup() && !value.is_markup() ? escape(budget, Value(result)).text() : result;
  }

  Value lookup(std::string_view name) {
    std::size_t end = std::min(name.find_first_of(".["), name.size());
    Value value = first(name.substr(0, end));
    while (end < name.size()) {
      bool attribute = name[end] == '.';
      std::size_t begin = end + 1;
      end = attribute ? std::min(name.find_first_of(".[", begin), name.size()) : name.find(']', begin);
      if (end == name.npos) fault("Missing ']' in format string");
      std::string key(name.substr(begin, end - begin));
      value = attribute ? runtime_.attribute(value, key) : runtime_.item(value, index(key));
      if (!attribute) ++end;
    }
    return value;
  }

  static Value index(const std::string& key) {
    std::int64_t number = 0;
    auto result = std::from_chars(key.data(), key.data() + key.size(), number);
    bool whole = result.ec == std::errc() && result.ptr == key.data() + key.size();
    return whole ? Value(number) : Value(key);
  }

  Value first(std::string_view name) {
    Value number = name.empty() ? Value(next_++) : index(std::string(name));
    if (number.is_integer()) {
      if (numbering_ && *numbering_ != name.empty()) fault("cannot mix automatic and manual field numbering");
      numbering_ = name.empty();
      return positional(number.integer());
    }
    for (const auto& [known, value] : call_.named)
      if (known == name) return value;
    fault("the arguments of a format have no key '{}'", name);
  }

  Value positional(std::int64_t i) const {
    if (i < 0 || i >= std::ssize(call_.args))
      fault("Replacement index {} out of range for positional args tuple", i);
    return call_.args[i];
  }

  Runtime& runtime_;
  const Value& format_;
  const Call& call_;
  std::int64_t next_ = 0;
  std::optional<bool> numbering_;  // whether fields are numbered automatically; set by the first one
};

}  // namespace

Value percent_format(Budget& budget, const Value& format, const Value& arguments) {
  return Percent(budget, format, arguments).run();
}

Value brace_format(Runtime& runtime, const Value& format, const Call& call) {
  return Brace(runtime, format, call).run();
}

}  // namespace sluice::jinja::builtins
