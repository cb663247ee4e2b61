// How good guesses at experts have been lately.
#pragma once

#include <cstddef>

namespace sluice::experts {

class GuessRecord {
 public:
  void learn(std::size_t right, std::size_t wrong) {
    right_ = kKept * right_ + right;
    wrong_ = kKept * wrong_ + wrong;
  }
  // Whether to act on a guess: more of what was read for guesses than not must have been needed. Bad ones get
  // a chance now and then.
  bool trusted() { return right_ >= wrong_ || ++refused_ % kChance == 0; }

 private:
  static constexpr double kKept = 0.98;
  static constexpr unsigned kChance = 32;
  double right_ = 1;
  double wrong_ = 0;
  unsigned refused_ = 0;
};

}  // namespace sluice::experts
