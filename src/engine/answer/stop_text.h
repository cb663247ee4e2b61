// Watches a stream of text for stop texts, which may arrive in pieces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::engine::answer {

class StopText {
 public:
  explicit StopText(std::vector<std::string> stops);

  // Returns text that can no longer be part of a stop text. A stop text and all after it are dropped.
  std::string push(std::string_view text);
  // The rest at the end of the stream.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace sluice::engine::answer
