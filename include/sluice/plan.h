// Estimates the memory and speed of a model before anything is allocated.
#pragma once

#include "sluice/engine.h"

namespace sluice {

struct PlanOptions {
  std::uint64_t vram = 0;    // bytes of GPU memory; 0: that of this machine's GPU, if it has one
  std::uint64_t memory = 0;  // bytes of RAM; 0: this machine's
  std::int64_t sequences = 1;
};

// One place to run the model: GPU memory, or RAM.
struct PlacePlan {
  std::string place;  // "GPU" or "CPU"
  std::uint64_t budget = 0;
  std::uint64_t scratch = 0;  // what all sequences share: activations of a pass, and the program itself
  std::int64_t longest_context =
      0;  // tokens that fit a sequence beside scratch and the weights that must stay; 0: not even those fit
  // If the weights do not fit: experts per layer that stay in memory, while the others are streamed from disk
  // (for a GPU: over the bus from RAM); 0: not needed, or not possible either.
  std::int64_t expert_slots = 0;
  std::uint64_t smallest_budget = 0;  // the smallest budget that would do with streamed experts
  double beyond_bytes_per_second =
      0;  // of the disk or the bus, measured; 0: not needed, or nothing to measure
  double even_tokens_per_second = 0;  // with streamed experts, if all were chosen equally often
  double bytes_per_second = 0;        // measured; 0 where the place is not of this machine
  // At an empty context, if every byte moved at the measured rates; 0: unknown. With streamed experts, this
  // assumes that choices follow Zipf's law with exponent 1 and that the most used experts stay in memory.
  double decode_tokens_per_second = 0;
  struct Context {
    std::int64_t tokens = 0;
    std::uint64_t bytes = 0;  // caches, states, logits and steps of all sequences
    bool fits = false;
    bool with_experts_elsewhere = false;  // whether it fits, or would fit with streamed experts
  };
  std::vector<Context> contexts;
};

struct MemoryPlan {
  ModelSummary model;
  std::uint64_t dense = 0;    // bytes of weights every token uses
  std::uint64_t experts = 0;  // bytes of weights that tokens choose from
  std::vector<PlacePlan> places;
};

// Plans for a checkpoint folder, or for a geometry with `bits` bits per weight.
MemoryPlan plan_model(const std::filesystem::path& folder, const PlanOptions& options,
                      const EngineOptions& engine);
MemoryPlan plan_geometry(std::string_view geometry, int bits, const PlanOptions& options,
                         const EngineOptions& engine);

}  // namespace sluice
