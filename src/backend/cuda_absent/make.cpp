// Stands in for the CUDA backend in builds without it.
#include "backend/make.h"
#include "base/error.h"

namespace sluice::backend::cuda {

std::string unavailable() {
  return "this build has no CUDA backend; configure it with -DSLUICE_CUDA=ON "
         "(pip: --config-settings=cmake.define.SLUICE_CUDA=ON) where nvcc is installed";
}

std::unique_ptr<ops::Backend> make(const ops::BackendOptions&) {
  fail(ErrorKind::unsupported, "{}", unavailable());
}

}  // namespace sluice::backend::cuda
