// Experts that do not all fit in memory: each pass computes with those that are there while others are read.
#pragma once

#include "base/function_ref.h"
#include "experts/device_tier.h"
#include "layers/device.h"
#include "layers/foresight.h"

namespace sluice::layers {

struct StreamedExperts {
  experts::Cache* cache = nullptr;        // in host memory, to compute with
  experts::DeviceTier* device = nullptr;  // or in a device's
  int layer = 0;                          // of either
  Foresight foresight;                    // of what the layer behind it will need

  bool present() const { return cache != nullptr; }
  // expert_out [T,k,hidden] of h [T,hidden] and the experts chosen, I32 [T,k] in host memory; x [T,hidden] is
  // the residual. `meanwhile` runs after reads have been started. The bits are those of the two ops on
  // resident experts: a choice's result depends on nothing else in a call.
  void forward(Device& dev, const ops::View& h, const ops::View& x, const ops::View& chosen,
               const ops::View& expert_out, FunctionRef<void()> meanwhile) const;

 private:
  void read_ahead(Device& dev, const ops::View& x, experts::Cache::Pass& pass) const;
};

}  // namespace sluice::layers
