// One limit for everything that the engine keeps in memory. Experts get what nothing else has claimed.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "experts/cache.h"

namespace sluice::engine::placement {

class Budget {
 public:
  // Claimed bytes, returned on destruction.
  class Claim {
   public:
    Claim() = default;
    Claim(Budget& budget, std::uint64_t bytes) : budget_(&budget), bytes_(bytes) {}
    Claim(Claim&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Claim& operator=(Claim&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Claim() {
      if (budget_ != nullptr) budget_->give_back(bytes_);
    }
    // Claims more or less than before; throws like claim(), and then nothing changes.
    void change(std::uint64_t bytes);

   private:
    Budget* budget_ = nullptr;
    std::uint64_t bytes_ = 0;
  };

  // 0: no limit. `option` is the option that sets it; `whose` names the machine if there are several.
  void set_limit(std::uint64_t bytes, const char* option, const std::string& whose) {
    limit_ = bytes;
    option_ = option;
    whose_ = whose;
  }
  std::uint64_t limit() const { return limit_; }
  std::uint64_t left();   // not claimed
  std::uint64_t spare();  // of that, not needed by the minimum of experts
  // The cache whose slots fill what is left: at least `least` per layer, or `fixed` if that is not 0.
  void set_cache(experts::Cache* cache, std::int64_t least, std::int64_t fixed);
  // Throws if the bytes do not fit, naming the smallest limit that would do; `beside` must fit too but is not
  // claimed.
  Claim claim(std::uint64_t bytes, std::uint64_t beside = 0);

 private:
  void give_back(std::uint64_t bytes);
  void add(std::uint64_t bytes, std::uint64_t beside);
  std::int64_t slots_beside(std::uint64_t claimed) const;

  std::mutex mutex_;
  std::uint64_t limit_ = 0;
  const char* option_ = "";
  std::string whose_;
  std::uint64_t claimed_ = 0;
  experts::Cache* cache_ = nullptr;
  std::int64_t least_ = 0;
  std::int64_t fixed_ = 0;
};

}  // namespace sluice::engine::placement
