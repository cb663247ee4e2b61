// Memory on some backend that grows where it is: views and recorded programs keep its address.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace sluice::ops {

// Only addresses are reserved at first. Frees its memory when it goes.
class GrowingBuffer {
 public:
  GrowingBuffer() = default;
  virtual ~GrowingBuffer() {
    if (counter_ != nullptr) *counter_ -= bytes_;
  }
  GrowingBuffer(const GrowingBuffer&) = delete;
  GrowingBuffer& operator=(const GrowingBuffer&) = delete;

  // Takes memory for so many bytes, no more than were reserved, or gives back what lies behind them. What is
  // kept stays as it is, what is new is undefined. Nothing that is given back may be in use.
  void resize(std::size_t bytes) {
    const std::size_t taken = take(bytes);
    if (counter_ != nullptr) *counter_ += taken - bytes_;
    bytes_ = taken;
  }
  // Adds its bytes to `counter` for as long as it lives.
  void count_in(std::shared_ptr<std::atomic<std::uint64_t>> counter) {
    counter_ = std::move(counter);
    *counter_ += bytes_;
  }
  void* data() const { return data_; }
  // That are taken: a backend may round up what it is asked for.
  std::size_t bytes() const { return bytes_; }

 protected:
  void set_data(void* data) { data_ = data; }
  // Returns what is taken then; throws where there is no memory left, and then takes no more than before.
  virtual std::size_t take(std::size_t bytes) = 0;

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::shared_ptr<std::atomic<std::uint64_t>> counter_;
};

}  // namespace sluice::ops
