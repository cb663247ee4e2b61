// What running a model takes, known before anything is allocated.
#pragma once

#include "sluice/engine.h"

namespace sluice {

struct PlanOptions {
  std::uint64_t vram = 0;    // bytes of the GPU; 0: what this machine's has, none where there is no GPU
  std::uint64_t memory = 0;  // bytes of RAM; 0: this machine's
  std::int64_t sequences = 1;
};

// One place to run the model in: a GPU's memory, or RAM.
struct PlacePlan {
  std::string place;  // "GPU" or "CPU"
  std::uint64_t budget = 0;
  std::uint64_t scratch = 0;  // what all sequences share: activations of a pass, and the program itself
  std::int64_t longest_context =
      0;  // tokens that fit a sequence beside scratch and the weights that must stay; 0: not even those fit
  // Where the weights do not fit: experts per layer that stay, the others being read from disk, or over the
  // bus from RAM for a GPU; 0: not needed, or not possible either.
  std::int64_t expert_slots = 0;
  std::uint64_t smallest_budget = 0;  // that would do with experts elsewhere
  double beyond_bytes_per_second =
      0;  // of the disk or the bus, measured; 0: not needed, or nothing to measure
  double even_tokens_per_second = 0;  // with experts elsewhere, if all were chosen equally often
  double bytes_per_second = 0;        // measured; 0 where the place is not of this machine
  // At an empty context, if every byte moved at the measured rates; 0: unknown. With experts elsewhere:
  // if choices follow Zipf's law with exponent 1 and those chosen most stay in memory.
  double decode_tokens_per_second = 0;
  struct Context {
    std::int64_t tokens = 0;
    std::uint64_t bytes = 0;  // caches, states, logits and steps of all sequences
    bool fits = false;
    bool with_experts_elsewhere = false;  // it does so, or would, if not all experts stayed
  };
  std::vector<Context> contexts;
};

struct MemoryPlan {
  ModelSummary model;
  std::uint64_t dense = 0;    // bytes of weights every token uses
  std::uint64_t experts = 0;  // bytes of weights that tokens choose from
  std::vector<PlacePlan> places;
};

// Of a checkpoint folder, or of a geometry with random weights of so many bits.
MemoryPlan plan_model(const std::filesystem::path& folder, const PlanOptions& options,
                      const EngineOptions& engine);
MemoryPlan plan_geometry(std::string_view geometry, int bits, const PlanOptions& options,
                         const EngineOptions& engine);

}  // namespace sluice
