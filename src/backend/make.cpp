#include "backend/make.h"

#include <fmt/format.h>

#include "base/error.h"

namespace sluice::ops {

namespace {

class CalledProgram final : public Program {
 public:
  explicit CalledProgram(std::function<void()> body) : body_(std::move(body)) {}
  void run() override { body_(); }

 private:
  std::function<void()> body_;
};

}  // namespace

std::unique_ptr<Program> Backend::record(std::function<void()> body) {
  return std::make_unique<CalledProgram>(std::move(body));
}

std::vector<std::string_view> backend_names() {
  return {"reference", "cpu", "cuda"};
}

std::unique_ptr<Backend> make_backend(std::string_view name, const BackendOptions& options) {
  if (options.threads < 0)
    fail(ErrorKind::input, "the number of threads is {}, it must be at least 1, or 0 for one a core",
         options.threads);
  if (!options.isa.empty() && name != "cpu" && name != "auto")
    fail(ErrorKind::input, "the backend '{}' has no instruction set to choose, the backend cpu has", name);
  if (name == "reference") return backend::reference::make();
  if (name == "cpu") return backend::cpu::make(options);
  if (name == "cuda") return backend::cuda::make();
  if (name == "auto")
    return backend::cuda::unavailable().empty() && options.isa.empty() ? backend::cuda::make()
                                                                       : backend::cpu::make(options);
  fail(ErrorKind::input, "there is no backend '{}'; known are auto, {}", name,
       fmt::join(backend_names(), ", "));
}

}  // namespace sluice::ops
