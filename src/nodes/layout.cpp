#include "nodes/layout.h"

#include <charconv>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/integer_cast.h"

namespace sluice::nodes {

namespace {

// Numbers above 0, separated by `mark`; nothing if there is anything else.
std::optional<std::vector<std::int64_t>> numbers(std::string_view text, char mark) {
  std::vector<std::int64_t> all;
  for (const char* at = text.data(); at <= text.data() + text.size();) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(at, text.data() + text.size(), number);
    const bool last = end == text.data() + text.size();
    if (error != std::errc() || number < 1 || (!last && *end != mark)) return std::nullopt;
    all.push_back(number);
    at = end + 1;
  }
  return all;
}

Layout one_node_each(const std::vector<std::int64_t>& layers) {
  Layout layout;
  for (const std::int64_t count : layers) layout.push_back({count, {0}});
  return layout;
}

std::optional<Layout> groups_of(const std::vector<std::int64_t>& sizes) {
  constexpr std::int64_t kMost = 65'536;  // larger than any cluster in use
  Layout layout;
  for (const std::int64_t size : sizes) {
    if (size > kMost) return std::nullopt;
    layout.push_back({0, std::vector<std::int64_t>(to_size(size))});
  }
  return layout;
}

// "12:64+192" or "12".
std::optional<Stage> stage(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto layers = numbers(text.substr(0, colon), ',');
  if (!layers || layers->size() != 1) return std::nullopt;
  if (colon == std::string_view::npos) return Stage{layers->front(), {0}};
  const auto experts = numbers(text.substr(colon + 1), '+');
  if (!experts || experts->size() < 2) return std::nullopt;
  return Stage{layers->front(), *experts};
}

std::optional<Layout> stages(std::string_view text) {
  Layout layout;
  for (;;) {
    const std::size_t comma = text.find(',');
    const std::optional<Stage> next = stage(text.substr(0, comma));
    if (!next) return std::nullopt;
    layout.push_back(*next);
    if (comma == std::string_view::npos) return layout;
    text = text.substr(comma + 1);
  }
}

std::optional<Layout> parse(std::string_view text, int nodes) {
  constexpr std::string_view kExperts = "experts:";
  constexpr std::string_view kGroups = "groups:";
  if (text == "auto") return one_node_each(std::vector<std::int64_t>(to_size(nodes)));
  if (text == "experts") return Layout{{0, std::vector<std::int64_t>(to_size(nodes))}};
  if (text.starts_with(kExperts)) {
    const auto experts = numbers(text.substr(kExperts.size()), ',');
    if (!experts) return std::nullopt;
    return Layout{{0, *experts}};
  }
  if (!text.starts_with(kGroups)) return stages(text);
  const auto sizes = numbers(text.substr(kGroups.size()), ',');
  if (!sizes) return std::nullopt;
  return groups_of(*sizes);
}

}  // namespace

Layout parse_layout(const std::string& text, int nodes) {
  const std::optional<Layout> layout = parse(text, nodes);
  if (!layout)
    fail(ErrorKind::input, "nodes: expected auto, experts, groups:2,2 or counts such as 12,20,8, not '{}'",
         text);
  std::int64_t asked = 0;
  for (const Stage& stage : *layout) asked += stage.nodes();
  if (asked != nodes) fail(ErrorKind::input, "'{}' is for {} nodes, there are {}", text, asked, nodes);
  return *layout;
}

NodePlace place_of(const Layout& layout, int rank) {
  NodePlace place;
  int head = 0;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const Stage& stage = layout[i];
    place.heads.push_back(head);
    const int end = head + to_int(stage.nodes());
    if (rank >= head && rank < end) {
      place.stage = i;
      place.layers = {first, first + stage.layers};
      if (stage.nodes() > 1) place.first_experts = {0};
      if (stage.nodes() > 1)
        for (const std::int64_t count : stage.experts)
          place.first_experts.push_back(place.first_experts.back() + count);
    }
    head = end;
    first += stage.layers;
  }
  return place;
}

}  // namespace sluice::nodes
