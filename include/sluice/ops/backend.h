// Where ops run. A backend owns memory of its kind and executes every op of the vocabulary.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/ops/buffer.h"
#include "sluice/ops/ops.h"
#include "sluice/ops/phase.h"
#include "sluice/ops/rates.h"

namespace sluice::ops {

// A fixed sequence of ops.
class Program {
 public:
  virtual ~Program() = default;
  virtual void run() = 0;
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
  // Aligned to 64 bytes at least, contents undefined.
  virtual Buffer allocate(std::size_t bytes) = 0;
  // Of its own; 0 for backends that use the host's.
  virtual std::uint64_t memory_bytes() const { return 0; }
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;
  // Whether the host can read what views of this backend point to.
  virtual bool host_memory() const = 0;
  // Whether F32 activations are multiplied as they are: see BackendOptions.
  virtual bool exact() const { return true; }
  // Measured now, in some tenths of a second.
  virtual Rates measure_rates() = 0;
  // Waits until everything asked for is done. A device reports here what it met in the contents of fields,
  // which only it can read.
  virtual void synchronize() = 0;

  // Backends whose ops have one class ignore it.
  virtual void set_phase(Phase) {}
  // The ops `body` runs, to be run again and again over the same memory. A device that can records them once
  // and replays them with one launch; others call `body`.
  virtual std::unique_ptr<Program> record(std::function<void()> body);

  // Checks the op against its contract, then runs it.
  template <class Op>
  void run(const Op& op) {
    check(op, host_memory());
    execute(AnyOp(&op));
  }

 protected:
  virtual void execute(const AnyOp& op) = 0;
};

struct BackendOptions {
  int threads = 0;  // 0: one a core
  // Otherwise a CPU rounds activations that meet packed weights to integers of fifteen bits: results within
  // 2.5e-4 instead of 1e-5, several times faster.
  bool exact = true;
  // A lower instruction set than the CPU's best: sse4, avx2, avxvnni, avx512, amx; on Arm neon, dotprod,
  // i8mm.
  std::string isa = {};
};

// "reference", "cpu", "cuda", or "auto" for the fastest one that works here.
std::unique_ptr<Backend> make_backend(std::string_view name, const BackendOptions& options = {});
// The names make_backend knows, without "auto".
std::vector<std::string_view> backend_names();

}  // namespace sluice::ops
