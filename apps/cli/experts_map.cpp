#include "experts_map.h"

#include <fmt/core.h>
#include <png.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "sluice/error.h"

namespace sluice::cli {

namespace {

constexpr int kCell = 6;  // pixels a side
constexpr int kGap = 2;   // between layers

struct Color {
  png_byte red, green, blue;
};

// White for never, through orange to dark red for always. The root shows rare uses, too.
Color color_of(double share) {
  const double depth = std::sqrt(std::clamp(share, 0.0, 1.0));
  const auto channel = [&](double at_none, double at_half, double at_all) {
    const double value = depth < 0.5 ? at_none + (at_half - at_none) * 2 * depth
                                     : at_half + (at_all - at_half) * (2 * depth - 1);
    return static_cast<png_byte>(std::lround(value));
  };
  return {channel(255, 250, 110), channel(255, 150, 10), channel(255, 40, 30)};
}

}  // namespace

void write_experts_map(const ExpertUsage& usage, const std::string& path) {
  if (usage.uses.empty())
    throw Error(ErrorKind::input,
                "there is no map: all experts are in memory; give --memory or --expert-slots");
  std::size_t widest = 0;
  std::uint32_t most = 1;
  for (const auto& layer : usage.uses) {
    widest = std::max(widest, layer.size());
    for (const std::uint32_t count : layer) most = std::max(most, count);
  }
  const std::size_t width = widest * kCell;
  const std::size_t height = usage.uses.size() * (kCell + kGap);
  std::vector<Color> pixels(width * height, Color{255, 255, 255});
  for (std::size_t l = 0; l < usage.uses.size(); ++l)
    for (std::size_t e = 0; e < usage.uses[l].size(); ++e)
      for (std::size_t y = 0; y < kCell; ++y)
        std::fill_n(
            pixels.begin() + static_cast<std::ptrdiff_t>((l * (kCell + kGap) + y) * width + e * kCell), kCell,
            color_of(static_cast<double>(usage.uses[l][e]) / most));
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_RGB;
  if (png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, nullptr) == 0)
    throw Error(ErrorKind::input, fmt::format("cannot write '{}': {}", path, image.message));
}

}  // namespace sluice::cli
