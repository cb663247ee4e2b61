#include "generation_options.h"

#include <algorithm>

namespace sluice::cli {

void GenerationOptions::add(CLI::App& command) {
  SamplingSettings& sampling = options_.sampling;
  sampling.temperature = 0.7;
  command.add_option("-n", options_.max_tokens, "Tokens to generate at most")->capture_default_str();
  command.add_option("--ctx", context_, "Context in tokens; 0: as much as is needed")->capture_default_str();
  command.add_option("--temperature", sampling.temperature, "0: always the most likely token")
      ->capture_default_str();
  command.add_option("--top-k", sampling.top_k, "Choose among the k most likely; 0: all")
      ->capture_default_str();
  command.add_option("--top-p", sampling.top_p, "Choose among the most likely that make up p")
      ->capture_default_str();
  command.add_option("--min-p", sampling.min_p, "Leave out tokens below this share of the most likely")
      ->capture_default_str();
  command.add_option("--repetition-penalty", sampling.repetition_penalty, "Above 1: repeat less")
      ->capture_default_str();
  command
      .add_option("--presence-penalty", sampling.presence_penalty, "Off the logit of a token that occurred")
      ->capture_default_str();
  command.add_option("--frequency-penalty", sampling.frequency_penalty, "Off the logit for every occurrence")
      ->capture_default_str();
  command.add_option("--seed", sampling.seed, "The same seed, the same text")->capture_default_str();
  command.add_option("--stop", options_.stop, "Text that ends the answer (may be given several times)");
}

std::int64_t GenerationOptions::context(const Engine& engine, std::size_t prompt) const {
  if (context_ != 0) return context_;
  const auto needed = static_cast<std::int64_t>(prompt) + options_.max_tokens + 1;
  return std::min(needed, engine.summary().max_positions);
}

}  // namespace sluice::cli
