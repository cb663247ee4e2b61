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

}  // namespace sluice::backend
