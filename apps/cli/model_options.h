// The options that commands which load a model share.
#pragma once

#include <memory>

#include "parser.h"
#include "sluice/engine.h"

namespace sluice::cli {

inline constexpr const char* kDefaultModel = "delta-story";

struct ModelOptions {
  std::string model = kDefaultModel;
  EngineOptions engine;
  std::string kv = "auto";

  // One of the models in the box, by name.
  bool bundled() const { return !std::filesystem::is_directory(model); }
  std::shared_ptr<Engine> load();
  std::shared_ptr<Engine> random(const std::string& geometry, int bits);
  // Checks the options and writes them into `engine`; load and random do so themselves.
  void resolve();
};

void add_engine_options(Command& command, ModelOptions& options);
// The folder of a bundled model, or the path itself.
std::filesystem::path find_model(const std::string& model);

}  // namespace sluice::cli
