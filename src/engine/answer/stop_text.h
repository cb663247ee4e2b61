// Watching a stream of text for words that end it, also where they come in pieces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::engine {

class StopText {
 public:
  explicit StopText(std::vector<std::string> stops);

  // Text that can no longer be part of a stop. After a stop was seen, everything from it on is gone.
  std::string push(std::string_view text);
  // The rest at the end of the stream.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace sluice::engine
