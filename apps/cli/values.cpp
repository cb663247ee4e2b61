#include "values.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace sluice::cli {

namespace {

template <class T>
std::string allowed(const Range<T>& range) {
  const char* kind = std::is_integral_v<T> ? "a whole number" : "a number";
  const bool from = range.least > std::numeric_limits<T>::lowest();
  const bool to = range.most < std::numeric_limits<T>::max();
  if (from && to) return fmt::format("expected {} from {} to {}", kind, range.least, range.most);
  if (from) return fmt::format("expected {} of at least {}", kind, range.least);
  return fmt::format("expected {}", kind);
}

}  // namespace

template <class T>
std::optional<std::string> read_value(const std::string& text, const Range<T>& range, T& value) {
  const char* end = text.data() + text.size();
  const char* begin = text.starts_with('+') ? text.data() + 1 : text.data();
  T read{};
  const auto [stopped, error] = std::from_chars(begin, end, read);
  if (error != std::errc() || stopped != end || !(read >= range.least && read <= range.most))
    return allowed(range);
  value = read;
  return std::nullopt;
}

template std::optional<std::string> read_value(const std::string&, const Range<int>&, int&);
template std::optional<std::string> read_value(const std::string&, const Range<std::int64_t>&, std::int64_t&);
template std::optional<std::string> read_value(const std::string&, const Range<std::uint64_t>&,
                                               std::uint64_t&);
template std::optional<std::string> read_value(const std::string&, const Range<double>&, double&);

std::optional<std::string> read_size(const std::string& text, std::uint64_t& value) {
  constexpr const char* kExpected =
      "expected a number of bytes, with a unit or without, as in 24GB or 1.5GiB";
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc() || !(number >= 0)) return kExpected;
  std::string unit(stopped, end);
  unit.erase(0, unit.find_first_not_of(' ') == std::string::npos ? 0 : unit.find_first_not_of(' '));
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::tolower(c); });
  if (unit.ends_with('b')) unit.pop_back();
  const double base = unit.ends_with('i') ? 1024 : 1000;
  if (unit.ends_with('i')) unit.pop_back();
  constexpr std::string_view kUnits = "kmgtp";
  const std::size_t power = unit.empty() ? 0 : kUnits.find(unit) + 1;
  if (unit.size() > 1 || (!unit.empty() && power == 0)) return kExpected;
  const double bytes = number * std::pow(base, static_cast<double>(power));
  constexpr double kMost = 9e18;
  if (!(bytes < kMost)) return kExpected;
  value = std::llround(bytes);
  return std::nullopt;
}

}  // namespace sluice::cli
