#include "scheduler/chunk_plan.h"

#include <algorithm>

#include "scheduler/prompt_budget.h"

namespace sluice::scheduler {

std::vector<std::int64_t> plan_chunks(std::span<const PromptPart> prompts, std::int64_t budget) {
  std::vector<std::int64_t> chunks(prompts.size());
  bool first = true;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const auto& [done, left] = prompts[i];
    if (left <= 0) continue;
    const std::int64_t to_unit = kChunkUnit - done % kChunkUnit;
    std::int64_t chunk = std::min(left, to_unit);
    if (!first && chunk > budget) break;  // later prompts wait their turn, however short
    first = false;
    if (left > chunk) {
      const std::int64_t whole = std::max<std::int64_t>(0, budget - chunk) / kChunkUnit * kChunkUnit;
      const std::int64_t rest = left - chunk;
      chunk += rest <= budget - chunk ? rest : whole;
    }
    chunks[i] = chunk;
    budget -= chunk;
  }
  return chunks;
}

}  // namespace sluice::scheduler
