// The backends of this build, by constructor.
#pragma once

#include <memory>

#include "sluice/ops/backend.h"

namespace sluice::backend {

namespace reference {
std::unique_ptr<ops::Backend> make();
}
namespace cpu {
std::unique_ptr<ops::Backend> make(const ops::BackendOptions& options);
}
namespace cuda {
// Why there is no CUDA here, empty where there is.
std::string unavailable();
std::unique_ptr<ops::Backend> make();
// Host memory that the device copies from and to while the host goes on.
ops::Buffer allocate_pinned(std::size_t bytes);
}  // namespace cuda

}  // namespace sluice::backend
