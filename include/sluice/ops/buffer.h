// Owned memory on some backend.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace sluice::ops {

// Frees its memory when destroyed; can be moved but not copied.
class Buffer {
 public:
  using Free = void (*)(void* data, std::size_t bytes);
  Buffer() = default;
  Buffer(void* data, std::size_t bytes, Free free) : data_(data), bytes_(bytes), free_(free) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_ == nullptr) return;
    free_(data_, bytes_);
    if (counter_ != nullptr) *counter_ -= bytes_;
  }
  // Counts its bytes in `counter` as long as it exists.
  void count_in(std::shared_ptr<std::atomic<std::uint64_t>> counter) {
    counter_ = std::move(counter);
    *counter_ += bytes_;
  }
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(free_, other.free_);
    std::swap(counter_, other.counter_);
  }
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  Free free_ = nullptr;
  std::shared_ptr<std::atomic<std::uint64_t>> counter_;
};

}  // namespace sluice::ops
