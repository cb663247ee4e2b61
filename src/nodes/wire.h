// Values in messages, packed in their memory representation: all nodes run the same program on processors of
// the same byte order.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "nodes/transport.h"

namespace sluice::nodes {

class Writer {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void put(const T& value) { append(&value, sizeof(T)); }
  template <class T>
  void put_all(std::span<const T> values) {
    put(values.size());
    append(values.data(), values.size_bytes());
  }
  void put(const std::string& text) { put_all(std::span<const char>(text)); }

  bool empty() const { return message_.empty(); }
  Message take() { return std::exchange(message_, {}); }

 private:
  void append(const void* from, std::size_t bytes) {
    const std::size_t at = message_.size();
    message_.resize(at + bytes);
    if (bytes > 0) std::memcpy(message_.data() + at, from, bytes);
  }

  Message message_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> message) : left_(message) {}

  template <class T>
  requires std::is_trivially_copyable_v<T> T get() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  template <class T>
  std::vector<T> get_all() {
    const auto count = get<std::size_t>();
    if (count > left_.size() / sizeof(T)) fail(ErrorKind::internal, "a message between nodes is cut off");
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), take(count * sizeof(T)).data(), count * sizeof(T));
    return values;
  }
  std::string get_text() {
    const std::vector<char> text = get_all<char>();
    return {text.begin(), text.end()};
  }
  bool empty() const { return left_.empty(); }

 private:
  std::span<const std::byte> take(std::size_t bytes) {
    if (bytes > left_.size()) fail(ErrorKind::internal, "a message between nodes is cut off");
    const std::span<const std::byte> taken = left_.first(bytes);
    left_ = left_.subspan(bytes);
    return taken;
  }
  std::span<const std::byte> left_;
};

}  // namespace sluice::nodes
