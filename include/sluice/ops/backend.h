// Where ops run. A backend owns memory of its kind and executes every op of the vocabulary.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/ops/buffer.h"
#include "sluice/ops/ops.h"

namespace sluice::ops {

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
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;
  virtual void synchronize() = 0;

  // Checks the op against its contract, then runs it.
  template <class Op>
  void run(const Op& op) {
    check(op, host_memory());
    execute(AnyOp(&op));
  }

 protected:
  // Whether the host can read what views of this backend point to.
  virtual bool host_memory() const = 0;
  virtual void execute(const AnyOp& op) = 0;
};

struct BackendOptions {
  int threads = 0;  // 0: one a core
};

// "reference", "cpu", "cuda", or "auto" for the fastest one that works here.
std::unique_ptr<Backend> make_backend(std::string_view name, const BackendOptions& options = {});
// The names make_backend knows, without "auto".
std::vector<std::string_view> backend_names();

}  // namespace sluice::ops
