// An open file that is closed when it goes out of scope.
#pragma once

#include <unistd.h>

#include <utility>

namespace sluice::files {

class FileDescriptor {
 public:
  explicit FileDescriptor(int value = -1) : value_(value) {}
  ~FileDescriptor() { close(); }
  FileDescriptor(FileDescriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }

  bool valid() const { return value_ >= 0; }
  int get() const { return value_; }
  // False if the system reports a write error that it had deferred.
  bool close() { return value_ < 0 || ::close(std::exchange(value_, -1)) == 0; }

 private:
  int value_;
};

}  // namespace sluice::files
