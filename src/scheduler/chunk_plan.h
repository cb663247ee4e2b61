// Divides a turn's prompt tokens between the prompts in progress.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::scheduler {

struct PromptPart {
  std::int64_t done = 0;  // tokens of the sequence that are done
  std::int64_t left = 0;  // of its prompt
};

// Tokens to compute of each prompt, in their order, within a budget. A chunk ends at a multiple of kChunkUnit
// of its sequence or with its prompt, so its results do not depend on the budget. The first prompt gets at
// least one unit, whatever the budget.
std::vector<std::int64_t> plan_chunks(std::span<const PromptPart> prompts, std::int64_t budget);

}  // namespace sluice::scheduler
