// A backend owns memory of its kind and runs every op.
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
  // Bytes of the backend's memory that it uses, besides its ops' fields.
  virtual std::uint64_t bytes() const { return 0; }
};

// Properties of a kind of backend, known without creating one.
struct Traits {
  std::string_view place;            // where it computes, for people: "CPU" or "GPU"; empty: a specification
  bool host_memory = true;           // the host can read what its views point to
  bool records = false;              // a program is recorded once and then launched as a whole
  DType activations = DType::f32;    // unless exact arithmetic is requested
  std::int64_t prefill_chunk = 512;  // prompt tokens that suit one pass
  std::uint64_t growth = 1;          // growing memory is taken in multiples of this many bytes
  // Upper bounds of a recorded program's bytes: in itself and per layer of its model.
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
  // Where it runs, for people: threads and instruction set, or the device.
  virtual std::string description() const = 0;
  virtual const Traits& traits() const = 0;
  // Aligned to 64 bytes at least, contents undefined.
  Buffer allocate(std::size_t bytes);
  // Reserves addresses for up to `most` bytes, with the same alignment, but no memory yet.
  std::unique_ptr<GrowingBuffer> reserve(std::size_t most);
  // Bytes from allocate() and reserve() that are not freed yet.
  std::uint64_t allocated_bytes() const { return *allocated_; }
  // Host memory that a device copies from asynchronously.
  virtual Buffer allocate_pinned(std::size_t bytes) { return allocate_block(bytes); }
  // Bytes of its own memory; 0 for backends that use host memory.
  virtual std::uint64_t memory_bytes() const { return 0; }
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;
  // Between two places of the backend's memory.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  // Copies many parts of the backend's memory to the host, and back, in one operation on a device. Memory of
  // allocate_pinned() is fastest. The source of scatter() must stay valid until synchronize().
  virtual void gather(void* to, std::span<const MemoryPart> from);
  virtual void scatter(std::span<const MemoryPart> to, const void* from);
  // Fills a part of the backend's memory with zeros.
  virtual void clear(void* to, std::size_t bytes) = 0;
  // Whether F32 activations are multiplied unrounded: see BackendOptions.
  virtual bool exact() const { return true; }
  // Measures the machine in some tenths of a second, with at most this many bytes of memory; 0: the default.
  virtual Rates measure_rates(std::uint64_t memory) = 0;
  // Bytes per second from pinned memory to the backend's own, measured now; 0: there is no bus between them.
  virtual double measure_bus_rate() { return 0; }
  // Lets the backend's recorded programs wait for the host; an error for backends that compute in host
  // memory.
  virtual std::unique_ptr<Meeting> make_meeting(const Meeting::Room& room);
  // Waits until all submitted work is done. A device reports invalid contents of fields here, as only it can
  // read them.
  virtual void synchronize() = 0;

  // A program of the ops that `body` runs, to be run repeatedly on the same memory. A device may record the
  // ops once and replay them with one launch; other backends call `body`.
  virtual std::unique_ptr<Program> record(std::function<void()> body);

  // Checks the op against its contract, then runs it. Backends whose ops have one class ignore the phase.
  template <class Op>
  void run(const Op& op, Phase phase = Phase::automatic) {
    check(op, reads_contents());
    execute(AnyOp(&op), phase);
  }
  // The same for ops of which none writes what another one reads or writes, such as products of one input.
  // The results are those of running them one by one; a backend may compute them concurrently.
  template <class... Ops>
  void run_together(Phase phase, const Ops&... ops) {
    (check(ops, reads_contents()), ...);
    const AnyOp all[] = {AnyOp(&ops)...};
    execute_together(all, phase);
  }

 protected:
  virtual Buffer allocate_block(std::size_t bytes) = 0;
  virtual std::unique_ptr<GrowingBuffer> reserve_range(std::size_t most) = 0;
  // Whether a check may read the contents of fields: they exist, and the host can read them.
  virtual bool reads_contents() const { return traits().host_memory; }
  virtual void execute(const AnyOp& op, Phase phase) = 0;
  virtual void execute_together(std::span<const AnyOp> ops, Phase phase) {
    for (const AnyOp& op : ops) execute(op, phase);
  }

 private:
  std::shared_ptr<std::atomic<std::uint64_t>> allocated_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

struct BackendOptions {
  int threads = 0;  // 0: one per core
  // If false, a CPU rounds activations that are multiplied by packed weights to 15-bit integers: results
  // within 2.5e-4 instead of 1e-5, several times faster.
  bool exact = true;
  // A lower instruction set than the CPU's best: sse4, avx2, avxvnni, avx512, amx; on Arm neon, dotprod,
  // i8mm.
  std::string isa = {};
  Phase phase = Phase::automatic;  // the phase of ops that are run without one
};

// "reference", "cpu", "cuda", or "auto" for the fastest one that works here.
std::unique_ptr<Backend> make_backend(std::string_view name, const BackendOptions& options = {});
// The fastest one that computes in host memory.
std::unique_ptr<Backend> make_host_backend(const BackendOptions& options = {});
// The names that make_backend accepts, without "auto".
std::vector<std::string_view> backend_names();
// The properties of the backend with that name, whether or not it works here.
const Traits& backend_traits(std::string_view name);

}  // namespace sluice::ops
