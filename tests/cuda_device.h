// Tests that need a GPU are skipped with the reason why there is none.
#pragma once

#include <gtest/gtest.h>

#include "sluice/error.h"
#include "sluice/ops/backend.h"

namespace sluice {

// The CUDA backend, or null with the reason.
inline std::unique_ptr<ops::Backend> cuda_backend(std::string& reason) {
  try {
    return ops::make_backend("cuda");
  } catch (const Error& error) {
    reason = error.what();
    return nullptr;
  }
}

}  // namespace sluice

#define SLUICE_NEED_CUDA() \
  if (std::string reason; ::sluice::cuda_backend(reason) == nullptr) GTEST_SKIP() << "needs a GPU: " << reason
