// Where ops run. A backend owns memory of its kind and executes every op of the vocabulary.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/ops/buffer.h"
#include "sluice/ops/growing_buffer.h"
#include "sluice/ops/meeting.h"
#include "sluice/ops/ops.h"
#include "sluice/ops/phase.h"
#include "sluice/ops/rates.h"

namespace sluice::ops {

// A fixed sequence of ops.
class Program {
 public:
  virtual ~Program() = default;
  virtual void run() = 0;
  // Of the backend's memory that it takes beside what its ops were given.
  virtual std::uint64_t bytes() const { return 0; }
};

// What kind of machine part a backend is: known without one.
struct Traits {
  std::string_view place;            // where it computes, for people: "CPU" or "GPU"; empty: a specification
  bool host_memory = true;           // the host can read what its views point to
  bool records = false;              // a program is recorded once and then launched as a whole
  DType activations = DType::f32;    // unless exact arithmetic is asked for
  std::int64_t prefill_chunk = 512;  // prompt tokens that suit one pass
  std::uint64_t growth = 1;          // growing memory is taken in multiples of so many bytes
  // What a recorded program takes at most, for itself and for each layer of the model that it runs.
  std::uint64_t program_bytes = 0;
  std::uint64_t program_layer_bytes = 0;
};

// Some of a backend's memory.
struct MemoryPart {
  void* data = nullptr;
  std::size_t bytes = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  virtual std::string_view name() const = 0;
  // What it runs on, for people: threads and instruction set, or the device.
  virtual std::string description() const = 0;
  virtual const Traits& traits() const = 0;
  // Aligned to 64 bytes at least, contents undefined.
  Buffer allocate(std::size_t bytes);
  // Addresses for up to `most` bytes, aligned likewise, without memory yet.
  std::unique_ptr<GrowingBuffer> reserve(std::size_t most);
  // Of allocate() and reserve(), not freed yet.
  std::uint64_t allocated_bytes() const { return *allocated_; }
  // Host memory that a device copies from while the host goes on.
  virtual Buffer allocate_pinned(std::size_t bytes) { return allocate_block(bytes); }
  // Of its own; 0 for backends that use the host's.
  virtual std::uint64_t memory_bytes() const { return 0; }
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;
  // Between two places of the backend's memory.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  // Many parts of the backend's memory to the host's, one behind the other, and back. A device does it at
  // once, and fastest with memory of allocate_pinned(). What is scattered must stay until synchronize().
  virtual void gather(void* to, std::span<const MemoryPart> from);
  virtual void scatter(std::span<const MemoryPart> to, const void* from);
  // Fills a part of the backend's memory with zeros.
  virtual void clear(void* to, std::size_t bytes) = 0;
  // Whether F32 activations are multiplied as they are: see BackendOptions.
  virtual bool exact() const { return true; }
  // Measured now, in some tenths of a second, with at most so many bytes of memory; 0: what suits.
  virtual Rates measure_rates(std::uint64_t memory) = 0;
  // Bytes per second from pinned memory to the backend's own, measured now; 0: there is no bus between them.
  virtual double measure_bus_rate() { return 0; }
  // Where its programs meet the host; refused by backends that compute in host memory.
  virtual std::unique_ptr<Meeting> make_meeting(const Meeting::Room& room);
  // Waits until everything asked for is done. A device reports here what it met in the contents of fields,
  // which only it can read.
  virtual void synchronize() = 0;

  // The ops `body` runs, to be run again and again over the same memory. A device that can records them once
  // and replays them with one launch; others call `body`.
  virtual std::unique_ptr<Program> record(std::function<void()> body);

  // Checks the op against its contract, then runs it. Backends whose ops have one class ignore the phase.
  template <class Op>
  void run(const Op& op, Phase phase = Phase::automatic) {
    check(op, reads_contents());
    execute(AnyOp(&op), phase);
  }

 protected:
  virtual Buffer allocate_block(std::size_t bytes) = 0;
  virtual std::unique_ptr<GrowingBuffer> reserve_range(std::size_t most) = 0;
  // Whether a check may look at what fields contain: it is there, and the host can read it.
  virtual bool reads_contents() const { return traits().host_memory; }
  virtual void execute(const AnyOp& op, Phase phase) = 0;

 private:
  std::shared_ptr<std::atomic<std::uint64_t>> allocated_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

struct BackendOptions {
  int threads = 0;  // 0: one per core
  // Otherwise a CPU rounds activations that meet packed weights to integers of fifteen bits: results within
  // 2.5e-4 instead of 1e-5, several times faster.
  bool exact = true;
  // A lower instruction set than the CPU's best: sse4, avx2, avxvnni, avx512, amx; on Arm neon, dotprod,
  // i8mm.
  std::string isa = {};
  Phase phase = Phase::automatic;  // of ops that are run without one
};

// "reference", "cpu", "cuda", or "auto" for the fastest one that works here.
std::unique_ptr<Backend> make_backend(std::string_view name, const BackendOptions& options = {});
// The fastest one that computes in host memory.
std::unique_ptr<Backend> make_host_backend(const BackendOptions& options = {});
// The names make_backend knows, without "auto".
std::vector<std::string_view> backend_names();
// Of the backend with that name, whether or not it works here.
const Traits& backend_traits(std::string_view name);

}  // namespace sluice::ops
