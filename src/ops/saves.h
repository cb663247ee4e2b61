// The points at which a call saves states (`save_at`).
#pragma once

#include "ops/sequences.h"

namespace sluice::ops {

class Saves {
 public:
  template <class Op>
  explicit Saves(const Op& op)
      : at_(static_cast<const std::int32_t*>(op.save_at.data)),
        count_(op.save_at.present() ? op.save_at.dim(0) : 0) {}

  // Calls f(i, end) for every save i of a sequence, in ascending order: after the call's tokens up to `end`.
  template <class F>
  void for_each(const Sequence& sequence, F&& f) const {
    for (std::int64_t i = 0; i < count_; ++i)
      if (at_[i] > sequence.begin && at_[i] <= sequence.end) f(i, std::int64_t{at_[i]});
  }

 private:
  const std::int32_t* at_;
  std::int64_t count_;
};

}  // namespace sluice::ops
