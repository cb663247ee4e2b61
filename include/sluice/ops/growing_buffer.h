// Memory on a backend that grows in place, so that views and recorded programs can keep its address.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace sluice::ops {

// Only addresses are reserved at first. Frees its memory when destroyed.
class GrowingBuffer {
 public:
  GrowingBuffer() = default;
  virtual ~GrowingBuffer() {
    if (counter_ != nullptr) *counter_ -= bytes_;
  }
  GrowingBuffer(const GrowingBuffer&) = delete;
  GrowingBuffer& operator=(const GrowingBuffer&) = delete;

  // Commits memory for this many bytes, at most those reserved, or releases what is beyond them. Existing
  // contents stay; new contents are undefined. Released memory must not be in use.
  void resize(std::size_t bytes) {
    const std::size_t taken = take(bytes);
    if (counter_ != nullptr) *counter_ += taken - bytes_;
    bytes_ = taken;
  }
  // Counts its bytes in `counter` as long as it exists.
  void count_in(std::shared_ptr<std::atomic<std::uint64_t>> counter) {
    counter_ = std::move(counter);
    *counter_ += bytes_;
  }
  void* data() const { return data_; }
  // Bytes committed; a backend may round up.
  std::size_t bytes() const { return bytes_; }

 protected:
  void set_data(void* data) { data_ = data; }
  // Returns the bytes committed then; throws, and commits nothing more, if there is no memory left.
  virtual std::size_t take(std::size_t bytes) = 0;

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::shared_ptr<std::atomic<std::uint64_t>> counter_;
};

}  // namespace sluice::ops
