// A parameter for tests of many sequences: a model, a backend and the width of the caches.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "cuda_device.h"
#include "load_model.h"

namespace sluice {

struct ModelCase {
  const char* backend;
  const char* model;
  int bits = 16;  // of the caches

  bool on_cuda() const { return std::string_view(backend) == "cuda"; }
  std::shared_ptr<Engine> load(std::int64_t prefill_chunk) const {
    return load_model(model, {.backend = backend,
                              .threads = 2,
                              .prefill_chunk = prefill_chunk,
                              .key_bits = bits,
                              .value_bits = bits});
  }
};

inline std::ostream& operator<<(std::ostream& to, const ModelCase& one) {
  return to << one.backend << ' ' << one.model << ' ' << one.bits << " bits";
}

template <class Case>
std::string model_case_name(const ::testing::TestParamInfo<Case>& info) {
  const ModelCase& one = info.param;
  std::string name = std::string(one.backend) + "_" + one.model;
  if (one.bits != 16) name += "_" + std::to_string(one.bits);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace sluice

// To be used in SetUp() of a fixture with this parameter.
#define SLUICE_NEED_DEVICE_OF(model_case) \
  if ((model_case).on_cuda()) {           \
    SLUICE_NEED_CUDA();                   \
  }
