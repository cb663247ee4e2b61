// Tests that need a GPU skip with the reason why there is none.
#pragma once

#include <string>

#include "sluice/error.h"
#include "sluice/ops/backend.h"

namespace sluice {

// Empty where CUDA works.
inline std::string missing_cuda_device() {
  try {
    ops::make_backend("cuda");
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace sluice
