// The model that is served, as the protocols see it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sluice/engine.h"
#include "sluice/sampling.h"

namespace sluice::server {

struct ServedModel {
  std::shared_ptr<Engine> engine;
  std::string name;
  std::vector<std::string> aliases = {};  // it also goes by
  bool strict = false;                    // other names are refused
  SamplingSettings sampling = {};         // where a request says nothing
  std::int64_t context = 0;               // tokens of a prompt and its answer
  std::int64_t prompt_limit = 0;          // tokens of a prompt; 0: the context's
  std::int64_t created = 0;               // seconds since 1970

  // The same for those who only count.
  ServedModel unlimited() const;
  // Throws where a request names another model.
  void check_name(const std::string& asked) const;
};

// `folder` is the checkpoint, for how its makers want it sampled.
ServedModel serve_model(std::shared_ptr<Engine> engine, const std::filesystem::path& folder,
                        std::string name);

}  // namespace sluice::server
