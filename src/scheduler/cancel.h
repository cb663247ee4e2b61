// A request's stop button: any thread presses it, whoever works on the request looks at it between steps.
#pragma once

#include <atomic>
#include <memory>

namespace sluice::scheduler {

// Copies share one button.
class Cancel {
 public:
  void cancel() const { pressed_->store(true, std::memory_order_relaxed); }
  bool cancelled() const { return pressed_->load(std::memory_order_relaxed); }

 private:
  std::shared_ptr<std::atomic<bool>> pressed_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace sluice::scheduler
