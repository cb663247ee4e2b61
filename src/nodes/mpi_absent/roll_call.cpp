// For builds without PMIx.
#include "nodes/roll_call.h"

namespace sluice::nodes {

namespace {

class NoRoll final : public Roll {
 public:
  void begin() override {}
  std::optional<std::vector<std::string>> silent(std::chrono::milliseconds) const override {
    return std::nullopt;
  }
};

}  // namespace

std::unique_ptr<Roll> make_roll() {
  return std::make_unique<NoRoll>();
}

}  // namespace sluice::nodes
