// The models for tests of many sequences: bundled ones, or tiny ones with random weights.
#pragma once

#include <string>

#include "sluice/engine.h"
#include "source_dir.h"

namespace sluice {

inline std::shared_ptr<Engine> load_model(const std::string& model, const EngineOptions& options) {
  return Engine::load(
      (model.ends_with("story") ? source_dir() + "/models/" : test_data() + "/models/") + model, options);
}

}  // namespace sluice
