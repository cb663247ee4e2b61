#include "generation_options.h"

#include <algorithm>

namespace sluice::cli {

void GenerationOptions::add(Command& command) {
  SamplingSettings& sampling = options_.sampling;
  sampling.temperature = 0.7;
  command.option("-n", options_.max_tokens, "Tokens to generate at most");
  command.option("--ctx", context_, "Context in tokens; 0: as much as is needed");
  command.option("--temperature", sampling.temperature, "0: always the most likely token");
  command.option("--top-k", sampling.top_k, "Choose among the k most likely; 0: all");
  command.option("--top-p", sampling.top_p, "Choose among the most likely that make up p");
  command.option("--min-p", sampling.min_p, "Leave out tokens below this share of the most likely");
  command.option("--repetition-penalty", sampling.repetition_penalty, "Above 1: repeat less");
  command.option("--presence-penalty", sampling.presence_penalty, "Off the logit of a token that occurred");
  command.option("--frequency-penalty", sampling.frequency_penalty, "Off the logit for every occurrence");
  command.option("--seed", sampling.seed, "The same seed, the same text");
  command.option("--stop", options_.stop, "Text that ends the answer (may be given several times)");
}

std::int64_t GenerationOptions::context(const Engine& engine, std::size_t prompt) const {
  if (context_ != 0) return context_;
  const auto needed = static_cast<std::int64_t>(prompt) + options_.max_tokens + 1;
  return std::min(needed, engine.summary().max_positions);
}

}  // namespace sluice::cli
