#include "options/generation_options.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "sluice/generation_config.h"

namespace sluice::cli {

namespace {

constexpr double kMost = 1000;
constexpr double kUsualTemperature = 0.7;
constexpr const char* kOfModel = "the model's";

}  // namespace

void GenerationOptions::add(Command& command) {
  SamplingSettings& sampling = options_.sampling;
  command.group("Generating");
  command.option("-n,--max-tokens", options_.max_tokens, "Tokens to generate at most", {0, kMostTokens});
  command.option("--ctx", context_, "Context in tokens; 0: as much as is needed", {0, kMostTokens});
  command.option("--temperature", temperature_, "0: always the most likely token", {0, kMost}, kOfModel);
  command.option("--top-k", top_k_, "Choose among the k most likely; 0: all", {0, 1 << 30}, kOfModel);
  command.option("--top-p", top_p_, "Choose among the most likely that make up p", {0, 1}, kOfModel);
  command.option("--min-p", min_p_, "Leave out tokens below this share of the most likely", {0, 1}, kOfModel);
  command.option("--repetition-penalty", repetition_penalty_, "Above 1: repeat less", {0, kMost}, kOfModel);
  command.option("--presence-penalty", sampling.presence_penalty, "Off the logit of a token that occurred",
                 {-kMost, kMost});
  command.option("--frequency-penalty", sampling.frequency_penalty, "Off the logit for every occurrence",
                 {-kMost, kMost});
  command.option("--seed", seed_, "The same seed, the same text", {}, "another one each time");
  command.list("--stop", options_.stop, "Text that ends the answer (may be given several times)");
}

GenerateOptions GenerationOptions::resolve(const std::filesystem::path& model) const {
  GenerateOptions options = options_;
  options.sampling.temperature = kUsualTemperature;
  read_generation_config(model).apply_to(options.sampling);
  GenerationConfig{temperature_, top_k_, top_p_, min_p_, repetition_penalty_}.apply_to(options.sampling);
  options.sampling.seed = seed_.value_or(random_seed());
  return options;
}

nlohmann::ordered_json GenerationOptions::as_json() const {
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

std::int64_t GenerationOptions::context(const Engine& engine, std::size_t prompt) const {
  if (context_ != 0) return context_;
  const auto needed = static_cast<std::int64_t>(prompt) + options_.max_tokens + 1;
  return std::min(needed, engine.summary().max_positions);
}

std::uint64_t random_seed() {
  return std::random_device()() % 1'000'000'000;
}

}  // namespace sluice::cli
