// What a layer computes on: a backend and an arena for activations. In a planning pass nothing runs and only
// the arena's size is found, so that memory is known before the first token.
#pragma once

#include "sluice/ops/backend.h"

namespace sluice::layers {

// A stack of activation buffers in one block of memory.
class Arena {
 public:
  // Counts what is asked for; hands out views without memory.
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

// Gives back what was taken since it was made.
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

// Host work that cuts a pass into programs, which are recorded one at a time.
struct Cuts {
  std::size_t recorded = 0;  // the program whose ops run; those of others are left out
  std::size_t current = 0;
  std::vector<std::function<void()>> work;  // behind the programs 0, 1, ...
};

class Device {
 public:
  // Runs ops on the backend; with `cuts`, those of one program.
  Device(ops::Backend& backend, Arena& arena, ops::DType activations, Cuts* cuts = nullptr)
      : backend_(&backend), arena_(arena), activations_(activations), cuts_(cuts) {}
  // Plans: only the arena moves.
  Device(Arena& arena, ops::DType activations) : arena_(arena), activations_(activations) {}

  template <class Op>
  void run(const Op& op) {
    if (backend_ != nullptr && (cuts_ == nullptr || cuts_->current == cuts_->recorded)) backend_->run(op);
  }
  // Work of the host on what ops before it computed, for ops behind it.
  void cut(std::function<void()> work) {
    if (planning()) return;
    if (cuts_ == nullptr) return work();
    cuts_->work.push_back(std::move(work));
    ++cuts_->current;
  }
  // An activation, or a tensor of a type that is the same whatever the activations are.
  ops::View take(const ops::Shape& shape) { return arena_.take(activations_, shape); }
  ops::View take(const ops::Shape& shape, ops::DType type) { return arena_.take(type, shape); }
  Scope scope() { return Scope(arena_); }
  bool planning() const { return backend_ == nullptr; }

 private:
  ops::Backend* backend_ = nullptr;
  Arena& arena_;
  ops::DType activations_;
  Cuts* cuts_ = nullptr;
};

}  // namespace sluice::layers
