#include "commands/experts_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "sluice/error.h"
#include "terminal/output.h"
#include "terminal/terminal.h"

namespace sluice::cli::commands {

namespace {

constexpr std::size_t kLeft = 70;
constexpr std::size_t kTop = 60;
constexpr std::size_t kRight = 110;
constexpr std::size_t kBottom = 50;
constexpr std::size_t kPlot = 1024;  // pixels for all experts
constexpr std::size_t kLeastWidth = 420;

struct Color {
  int red, green, blue;
};

// White for never, through orange, to dark red for always. The square root makes rare uses visible.
Color color_of(double share) {
  const double depth = std::sqrt(std::clamp(share, 0.0, 1.0));
  const auto channel = [&](double at_none, double at_half, double at_all) {
    const double value = depth < 0.5 ? at_none + (at_half - at_none) * 2 * depth
                                     : at_half + (at_all - at_half) * (2 * depth - 1);
    return static_cast<int>(std::lround(value));
  };
  return {channel(255, 250, 110), channel(255, 150, 10), channel(255, 40, 30)};
}

std::string rectangle(std::size_t x, std::size_t y, std::size_t width, std::size_t height, Color color) {
  return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#{:02x}{:02x}{:02x}\"/>\n", x,
                     y, width, height, color.red, color.green, color.blue);
}

std::string label(std::size_t x, std::size_t y, const char* anchor, const std::string& text) {
  std::string safe;
  for (const char c : terminal::printable(text))
    c == '<' ? safe += "&lt;" : c == '&' ? safe += "&amp;" : safe += c;
  return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, safe);
}

// A step that gives about eight labels at round numbers.
std::size_t label_step(std::size_t count) {
  std::size_t step = 1;
  while (count / step > 8) step *= step % 3 == 2 ? 5 : 2;
  return step;
}

class Map {
 public:
  explicit Map(const ExpertUsage& usage) : uses_(usage.uses) {
    for (const auto& layer : uses_) {
      widest_ = std::max(widest_, layer.size());
      for (const std::uint32_t count : layer) most_ = std::max(most_, count);
    }
    cell_ = std::clamp<std::size_t>(kPlot / std::max<std::size_t>(1, widest_), 3, 16);
  }

  std::string draw(const std::string& title) const {
    const std::size_t width = std::max(kLeft + widest_ * cell_ + kRight, kLeastWidth);
    const std::size_t height = std::max(kTop + uses_.size() * cell_ + kBottom, kTop + kScale + kBottom);
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"{0}\" height=\"{1}\" "
        "fill=\"#ffffff\"/>\n",
        width, height);
    svg += label(kLeft, 24, "start", title);
    return svg + cells() + axes() + scale() + "</svg>\n";
  }

 private:
  static constexpr std::size_t kScale = 100;  // height of the scale in pixels

  std::string cells() const {
    std::string svg =
        fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#888888\"/>\n",
                    kLeft, kTop, widest_ * cell_, uses_.size() * cell_);
    for (std::size_t l = 0; l < uses_.size(); ++l)
      for (std::size_t e = 0; e < uses_[l].size(); ++e)
        if (uses_[l][e] > 0)
          svg += rectangle(kLeft + e * cell_, kTop + l * cell_, cell_, cell_,
                           color_of(static_cast<double>(uses_[l][e]) / most_));
    return svg;
  }

  std::string axes() const {
    std::string svg;
    for (std::size_t e = 0; e < widest_; e += label_step(widest_))
      svg += label(kLeft + e * cell_ + cell_ / 2, kTop - 6, "middle", fmt::format("{}", e));
    for (std::size_t l = 0; l < uses_.size(); l += label_step(uses_.size()))
      svg += label(kLeft - 6, kTop + l * cell_ + cell_ / 2 + 4, "end", fmt::format("{}", l));
    svg += label(kLeft + widest_ * cell_ / 2, kTop + uses_.size() * cell_ + 20, "middle", "expert");
    return svg + label(12, kTop + uses_.size() * cell_ / 2 + 4, "start", "layer");
  }

  std::string scale() const {
    constexpr std::size_t kSteps = 20;
    const std::size_t x = kLeft + widest_ * cell_ + 20;
    std::string svg;
    for (std::size_t i = 0; i < kSteps; ++i)
      svg += rectangle(x, kTop + i * kScale / kSteps, 12, kScale / kSteps,
                       color_of(1 - static_cast<double>(i) / (kSteps - 1)));
    svg += label(x + 18, kTop + 9, "start", fmt::format("{} times", most_));
    return svg + label(x + 18, kTop + kScale, "start", "never");
  }

  const std::vector<std::vector<std::uint32_t>>& uses_;
  std::size_t widest_ = 0;
  std::uint32_t most_ = 1;
  std::size_t cell_ = 1;
};

}  // namespace

void write_experts_map(const ExpertUsage& usage, const std::string& model, const std::string& path) {
  if (usage.uses.empty()) throw Error(ErrorKind::input, "there is no map to draw: this model has no experts");
  terminal::write_file(path, Map(usage).draw(fmt::format("How often {} needed each expert", model)));
}

}  // namespace sluice::cli::commands
