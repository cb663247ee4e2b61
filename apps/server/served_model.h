// The served model, as the protocols see it.
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
  std::vector<std::string> aliases = {};  // other names that it goes by
  bool strict = false;                    // whether other names are rejected
  SamplingSettings sampling = {};         // defaults of requests
  std::int64_t context = 0;               // tokens of a prompt and its answer
  std::int64_t prompt_limit = 0;          // tokens of a prompt; 0: the context's
  std::int64_t created = 0;               // seconds since 1970

  // The same without limits, for requests that only count tokens.
  ServedModel unlimited() const;
  // Throws if a request names another model.
  void check_name(const std::string& asked) const;
};

// `folder` is the checkpoint, whose recommended sampling settings are used.
ServedModel serve_model(std::shared_ptr<Engine> engine, const std::filesystem::path& folder,
                        std::string name);

}  // namespace sluice::server
