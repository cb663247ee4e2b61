// Simulates a GPU: the processor's kernels on memory that only the backend may access. Any other access ends
// the test by a fault.
#pragma once

#include <sys/mman.h>

#include <map>
#include <mutex>

#include "base/integer_cast.h"
#include "sluice/error.h"
#include "sluice/ops/backend.h"

namespace sluice {

// All memory of such devices, accessible while one of them works.
class DeviceMemory {
 public:
  static DeviceMemory& all() {
    static DeviceMemory memory;
    return memory;
  }

  void* add(std::size_t bytes) {
    const std::size_t rounded = (bytes + kPage) / kPage * kPage;
    const std::lock_guard lock(mutex_);
    void* data = ::mmap(nullptr, rounded, protection(), MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) throw Error(ErrorKind::resource, "no memory for the device of a test");
    parts_[data] = rounded;
    return data;
  }
  void remove(void* data) {
    const std::lock_guard lock(mutex_);
    const auto part = parts_.find(data);
    ::munmap(part->first, part->second);
    parts_.erase(part);
  }

  class Window {
   public:
    Window() { all().change(1); }
    ~Window() { all().change(-1); }
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;
  };

 private:
  static constexpr std::size_t kPage = 4096;

  int protection() const { return open_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE; }
  void change(int by) {
    const std::lock_guard lock(mutex_);
    const int before = protection();
    open_ += by;
    if (protection() == before) return;
    for (const auto& [data, bytes] : parts_) ::mprotect(data, bytes, protection());
  }

  std::mutex mutex_;
  std::map<void*, std::size_t> parts_;
  int open_ = 0;
};

class DiscreteBackend final : public ops::Backend {
 public:
  DiscreteBackend(std::unique_ptr<ops::Backend> inner, ops::DType activations)
      : inner_(std::move(inner)), traits_(inner_->traits()) {
    traits_.place = "GPU";
    traits_.host_memory = false;
    traits_.activations = activations;
  }

  std::string_view name() const override { return "discrete"; }
  std::string description() const override { return "a device of its own"; }
  const ops::Traits& traits() const override { return traits_; }
  bool exact() const override { return inner_->exact(); }
  std::uint64_t memory_bytes() const override { return std::uint64_t{1} << 30; }
  ops::Buffer allocate_pinned(std::size_t bytes) override { return inner_->allocate(bytes); }
  void upload(void* to, const void* from, std::size_t bytes) override { move(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { move(to, from, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override { move(to, from, bytes); }
  void clear(void* to, std::size_t bytes) override {
    const DeviceMemory::Window window;
    inner_->clear(to, bytes);
  }
  void synchronize() override {}
  ops::Rates measure_rates(std::uint64_t memory) override { return inner_->measure_rates(memory); }

 private:
  class Growing final : public ops::GrowingBuffer {
   public:
    explicit Growing(std::size_t most) { set_data(DeviceMemory::all().add(most)); }
    ~Growing() override { DeviceMemory::all().remove(data()); }

   protected:
    std::size_t take(std::size_t bytes) override { return bytes; }
  };

  ops::Buffer allocate_block(std::size_t bytes) override {
    return {DeviceMemory::all().add(bytes), bytes,
            [](void* data, std::size_t) { DeviceMemory::all().remove(data); }};
  }
  std::unique_ptr<ops::GrowingBuffer> reserve_range(std::size_t most) override {
    return std::make_unique<Growing>(most);
  }
  void execute(const ops::AnyOp& op, ops::Phase phase) override {
    const DeviceMemory::Window window;
    std::visit([&](const auto* known) { inner_->run(*known, phase); }, op);
  }
  void move(void* to, const void* from, std::size_t bytes) {
    const DeviceMemory::Window window;
    inner_->copy(to, from, bytes);
  }

  std::unique_ptr<ops::Backend> inner_;
  ops::Traits traits_;
};

}  // namespace sluice
