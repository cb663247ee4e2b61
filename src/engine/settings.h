// The engine's options with the backend's defaults filled in.
#pragma once

#include "sluice/engine.h"
#include "sluice/ops/backend.h"
#include "state/cache_format.h"

namespace sluice::engine {

struct Settings {
  ops::DType activations = ops::DType::f32;
  state::CacheFormat cache;
  std::int64_t prefill_chunk = 0;  // prompt tokens of one pass
  // See ops::Traits.
  std::uint64_t growth = 1;
  std::uint64_t program_bytes = 0;
  std::uint64_t program_layer_bytes = 0;
};

// Throws if an option is invalid.
void check(const EngineOptions& options);
Settings settings_for(const EngineOptions& options, const ops::Traits& backend);

}  // namespace sluice::engine
