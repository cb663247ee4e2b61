// The bundled model as a server loads it.
#pragma once

#include "server/served_model.h"
#include "source_dir.h"

namespace sluice::server {

inline const ServedModel& bundled() {
  static const ServedModel model = [] {
    const auto folder = std::filesystem::path(source_dir()) / "models/delta-story";
    return serve_model(Engine::load(folder, {.backend = "cpu", .threads = 1}), folder, "delta-story");
  }();
  return model;
}

}  // namespace sluice::server
