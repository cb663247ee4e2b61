// The options of commands that generate text.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "options/model_options.h"
#include "sluice/session.h"

namespace sluice::cli {

class GenerationOptions {
 public:
  void add(Command& command);
  // What was asked for, over what the model's generation_config.json says, over this program's defaults.
  // Without --seed one is drawn.
  GenerateOptions resolve(const std::filesystem::path& model) const;
  // The context to make for a prompt of that length: what --ctx says, or enough.
  std::int64_t context(const Engine& engine, std::size_t prompt) const;
  // What was asked for, by the names that servers know it by.
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

// A seed that nobody chose, short enough to type again.
std::uint64_t random_seed();

}  // namespace sluice::cli
