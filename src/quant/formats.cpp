#include "quant/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace sluice::quant {

const Format* find_format(std::string_view name) {
  const auto found =
      std::find_if(kFormats.begin(), kFormats.end(), [&](const Format* f) { return f->name == name; });
  return found == kFormats.end() ? nullptr : *found;
}

std::string format_names() {
  std::string names;
  for (const Format* format : kFormats) names += (names.empty() ? "" : ", ") + std::string(format->name);
  return names;
}

std::string allowed_text(std::span<const int> allowed) {
  std::vector<int> rising(allowed.begin(), allowed.end());
  std::sort(rising.begin(), rising.end());
  return fmt::format("{}", fmt::join(rising, ", "));
}

bool allows(std::span<const int> allowed, int value) {
  return std::find(allowed.begin(), allowed.end(), value) != allowed.end();
}

std::string label(const ops::Weight& weight) {
  if (!weight.quantized()) return std::string(name(weight.values.dtype));
  const Format& format = format_of(weight.mode);
  if (format.bits.size() == 1) return std::string(format.name);
  return fmt::format("{}-bit g{}", weight.bits, weight.group_size);
}

}  // namespace sluice::quant
