// Experts that do not all fit in memory: each pass computes those in memory while others are read.
#pragma once

#include "base/function_ref.h"
#include "experts/cache.h"
#include "layers/device.h"
#include "layers/moe/foresight.h"
#include "layers/moe/input.h"

namespace sluice::layers::moe {

struct StreamedExperts {
  experts::Cache* cache = nullptr;  // in host memory
  int layer = 0;                    // of the cache
  Foresight foresight;              // predicts what the next layer will need

  // The bits are those of resident experts: a choice's result depends on nothing else in a call.
  void forward(Device& dev, const Moe& moe, const Input& in) const;

 private:
  // `meanwhile` runs after reads have been started.
  void compute(Device& dev, const Input& in, const Chosen& chosen, FunctionRef<void()> meanwhile) const;
  void read_ahead(Device& dev, const ops::View& x, experts::Cache::Pass& pass) const;
};

}  // namespace sluice::layers::moe
