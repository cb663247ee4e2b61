#include "backend/cuda/linear_prefill.h"

namespace sluice::backend::cuda {

bool supports_prefill(const LinearCall&, const DeviceInfo&) {
  return false;
}

void launch_prefill(Context&, const LinearCall&) {}

}  // namespace sluice::backend::cuda
