// What a layer computes on: a backend and an arena for activations. A planning pass runs nothing and only
// finds the arena's size, so that memory is known before the first token.
#pragma once

#include "base/function_ref.h"
#include "sluice/ops/backend.h"

namespace sluice::layers {

// A stack of activation buffers in one block of memory.
class Arena {
 public:
  // Only counts the requested bytes; returns views without memory.
  Arena() = default;
  explicit Arena(ops::Buffer memory) : memory_(std::move(memory)) {}

  ops::View take(ops::DType type, const ops::Shape& shape);
  std::size_t peak() const { return peak_; }

 private:
  friend class Scope;
  ops::Buffer memory_;
  std::size_t used_ = 0;
  std::size_t peak_ = 0;
};

// Returns what was taken since its construction.
class Scope {
 public:
  explicit Scope(Arena& arena) : arena_(arena), mark_(arena.used_) {}
  ~Scope() { arena_.used_ = mark_; }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Arena& arena_;
  std::size_t mark_;
};

// The host's work while a program runs, in order.
using HostWork = std::vector<std::function<void()>>;

class Device {
 public:
  // Runs ops on the backend; with `recorded`, they are recorded, and the host's work is added there.
  Device(ops::Backend& backend, Arena& arena, ops::DType activations, HostWork* recorded = nullptr)
      : backend_(&backend), arena_(arena), activations_(activations), recorded_(recorded) {}
  // Planning: only the arena moves.
  Device(Arena& arena, ops::DType activations) : arena_(arena), activations_(activations) {}

  template <class Op>
  void run(const Op& op) {
    if (backend_ != nullptr) backend_->run(op, phase_);
  }
  // Ops that do not depend on each other.
  template <class... Ops>
  void run_together(const Ops&... ops) {
    if (backend_ != nullptr) backend_->run_together(phase_, ops...);
  }
  // The phase of the following ops.
  void set_phase(ops::Phase phase) { phase_ = phase; }
  ops::Phase phase() const { return phase_; }
  // Runs `op`, which makes the device wait for `work` of the host.
  void meet(FunctionRef<void()> op, std::function<void()> work) {
    if (planning()) return;
    op();
    if (recorded_ == nullptr) return work();
    recorded_->push_back(std::move(work));
  }
  // An activation, or a tensor whose type does not depend on that of the activations.
  ops::View take(const ops::Shape& shape) { return arena_.take(activations_, shape); }
  ops::View take(const ops::Shape& shape, ops::DType type) { return arena_.take(type, shape); }
  Scope scope() { return Scope(arena_); }
  bool planning() const { return backend_ == nullptr; }

 private:
  ops::Backend* backend_ = nullptr;
  Arena& arena_;
  ops::DType activations_;
  HostWork* recorded_ = nullptr;
  ops::Phase phase_ = ops::Phase::automatic;
};

}  // namespace sluice::layers
