#include "backend/make.h"

#include <fmt/ranges.h>

#include "base/error.h"

namespace sluice::ops {

std::vector<std::string_view> backend_names() {
  return {"reference", "cpu"};
}

std::unique_ptr<Backend> make_backend(std::string_view name, const BackendOptions& options) {
  if (options.threads < 0)
    fail(ErrorKind::input, "the number of threads is {}, it must be at least 1, or 0 for one a core",
         options.threads);
  if (name == "reference") return backend::reference::make();
  if (name == "cpu" || name == "auto") return backend::cpu::make(options);
  if (name == "cuda") fail(ErrorKind::unsupported, "this build has no CUDA backend; use 'cpu'");
  fail(ErrorKind::input, "there is no backend '{}'; known are auto, {}", name,
       fmt::join(backend_names(), ", "));
}

}  // namespace sluice::ops
