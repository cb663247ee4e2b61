#include "options/generation.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "sluice/generation_config.h"

namespace sluice::cli::options {

namespace {

constexpr double kMost = 1000;
constexpr double kUsualTemperature = 0.7;
constexpr const char* kOfModel = "the model's";

}  // namespace

void Generation::add(Command& command) {
  SamplingSettings& sampling = options_.sampling;
  command.group("Generating");
  command.option("-n,--max-tokens", options_.max_tokens, "Maximum number of tokens to generate",
                 {0, kMostTokens});
  command.option("--ctx", context_, "Context length in tokens; 0: as long as needed", {0, kMostTokens});
  command.option("--temperature", temperature_, "Sampling temperature; 0: always the most likely token",
                 {0, kMost}, kOfModel);
  command.option("--top-k", top_k_, "Sample from the k most likely tokens; 0: from all", {0, 1 << 30},
                 kOfModel);
  command.option("--top-p", top_p_, "Sample from the most likely tokens whose probabilities add up to p",
                 {0, 1}, kOfModel);
  command.option("--min-p", min_p_, "Drop tokens below this fraction of the most likely token's probability",
                 {0, 1}, kOfModel);
  command.option("--repetition-penalty", repetition_penalty_, "Values above 1 discourage repetition",
                 {0, kMost}, kOfModel);
  command.option("--presence-penalty", sampling.presence_penalty,
                 "Subtracted from the logit of every token that has occurred", {-kMost, kMost});
  command.option("--frequency-penalty", sampling.frequency_penalty,
                 "Subtracted from a token's logit once per occurrence", {-kMost, kMost});
  command.option("--seed", seed_, "The same seed gives the same text", {}, "a new one per run");
  command.list("--stop", options_.stop, "Text that ends the answer (may be repeated)");
}

GenerateOptions Generation::resolve(const std::filesystem::path& model) const {
  GenerateOptions options = options_;
  options.sampling.temperature = kUsualTemperature;
  read_generation_config(model).apply_to(options.sampling);
  GenerationConfig{temperature_, top_k_, top_p_, min_p_, repetition_penalty_}.apply_to(options.sampling);
  options.sampling.seed = seed_.value_or(random_seed());
  return options;
}

nlohmann::ordered_json Generation::as_json() const {
  nlohmann::ordered_json json{{"max_tokens", options_.max_tokens},
                              {"presence_penalty", options_.sampling.presence_penalty},
                              {"frequency_penalty", options_.sampling.frequency_penalty}};
  const auto set = [&json](const char* name, const auto& value) {
    if (value) json[name] = *value;
  };
  set("temperature", temperature_);
  set("top_k", top_k_);
  set("top_p", top_p_);
  set("min_p", min_p_);
  set("repetition_penalty", repetition_penalty_);
  set("seed", seed_);
  if (!options_.stop.empty()) json["stop"] = options_.stop;
  return json;
}

std::int64_t Generation::context(const Engine& engine, std::size_t prompt) const {
  if (context_ != 0) return context_;
  const auto needed = static_cast<std::int64_t>(prompt) + options_.max_tokens + 1;
  return std::min(needed, engine.summary().max_positions);
}

std::uint64_t random_seed() {
  return std::random_device()() % 1'000'000'000;
}

}  // namespace sluice::cli::options
