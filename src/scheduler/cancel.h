// A request's cancel flag: any thread may set it, and the computing thread checks it between steps.
#pragma once

#include <atomic>
#include <memory>

namespace sluice::scheduler {

// Copies share one flag.
class Cancel {
 public:
  void cancel() const { pressed_->store(true, std::memory_order_relaxed); }
  bool cancelled() const { return pressed_->load(std::memory_order_relaxed); }

 private:
  std::shared_ptr<std::atomic<bool>> pressed_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace sluice::scheduler
