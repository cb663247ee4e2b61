#include "engine/answer/stop_text.h"

#include <algorithm>
#include <utility>

namespace sluice::engine::answer {

StopText::StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

std::string StopText::push(std::string_view text) {
  if (stopped_) return {};
  held_ += text;
  std::size_t first = std::string::npos;
  for (const std::string& stop : stops_) first = std::min(first, held_.find(stop));
  if (first != std::string::npos) {
    stopped_ = true;
    held_.resize(first);
    return std::exchange(held_, {});
  }
  // Keep the longest tail that may still become a stop.
  std::size_t tail = 0;
  for (const std::string& stop : stops_)
    for (std::size_t length = std::min(stop.size() - 1, held_.size()); length > tail; --length)
      if (std::string_view(held_).substr(held_.size() - length) == std::string_view(stop).substr(0, length))
        tail = length;
  std::string ready = held_.substr(0, held_.size() - tail);
  held_.erase(0, ready.size());
  return ready;
}

std::string StopText::finish() {
  return std::exchange(held_, {});
}

}  // namespace sluice::engine::answer
