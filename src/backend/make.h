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
}  // namespace cuda

}  // namespace sluice::backend
