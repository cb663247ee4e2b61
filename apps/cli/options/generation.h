// The options of commands that generate text.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "options/model.h"
#include "sluice/session.h"

namespace sluice::cli::options {

class Generation {
 public:
  void add(Command& command);
  // The given options, then the model's generation_config.json, then this program's defaults. Without --seed
  // a random one is chosen.
  GenerateOptions resolve(const std::filesystem::path& model) const;
  // The context for a prompt of that length: --ctx, or enough.
  std::int64_t context(const Engine& engine, std::size_t prompt) const;
  // The given options by the names that servers use.
  nlohmann::ordered_json as_json() const;
  std::int64_t max_tokens() const { return options_.max_tokens; }

 private:
  GenerateOptions options_;
  std::int64_t context_ = 0;
  std::optional<double> temperature_;
  std::optional<int> top_k_;
  std::optional<double> top_p_;
  std::optional<double> min_p_;
  std::optional<double> repetition_penalty_;
  std::optional<std::uint64_t> seed_;
};

// A random seed, short enough to type again.
std::uint64_t random_seed();

}  // namespace sluice::cli::options
