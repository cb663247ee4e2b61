// What an engine holds.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "checkpoint/config.h"
#include "checkpoint/weight_store.h"
#include "engine/layer_share.h"
#include "engine/placement/budget.h"
#include "engine/placement/streaming.h"
#include "engine/placement/upload.h"
#include "engine/settings.h"
#include "models/model.h"
#include "sluice/engine.h"
#include "sluice/grammar.h"
#include "sluice/ops/backend.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace sluice::engine {

class Executor;

// What is in memory beside weights, caches and activations: on the host the program itself, tables of where
// experts lie and a tokenizer, on a device what its driver takes.
std::uint64_t process_bytes(const models::Model& model, const ops::Traits& traits);

// Tokens of a prompt in one pass that memory allows: as many as usual, or half of that again and again until
// `fits(chunk)`.
template <class F>
std::int64_t fitting_chunk(std::int64_t usual, F&& fits) {
  constexpr std::int64_t kLeast = 64;
  std::int64_t chunk = usual;
  while (chunk > kLeast && !fits(chunk)) chunk = std::max(kLeast, chunk / 2);
  return chunk;
}

// What is remembered of the forms of answers. Made when first asked for.
struct AnswerCache {
  std::mutex mutex;
  std::shared_ptr<GrammarCache> grammars;
  std::optional<std::string> call_probe;  // what the chat template makes of a call
};

struct Core {
  Core();
  ~Core();

  EngineOptions options;
  Settings settings;
  std::unique_ptr<ops::Backend> backend;
  checkpoint::WeightStore store;
  PlacedModel placed;      // copies on a device with memory of its own
  StreamedModel streamed;  // where experts are not kept in memory
  Budget budget;
  Budget host_budget;  // of experts that processors compute beside a device
  Budget::Claim weights_claim;
  Budget::Claim tier_claim;
  models::Model model;
  ModelSummary summary;  // of the whole model, whoever holds it
  std::optional<text::Tokenizer> tokenizer;
  std::optional<text::ChatTemplates> templates;
  std::vector<std::int32_t> stop_ids;
  mutable AnswerCache answers;
  std::unique_ptr<Executor> executor;  // last: it uses all of the above until it is gone

  // Checks the options and makes the backend they name.
  void start(const EngineOptions& wanted);
  // Where nodes share the model: keeps the layers and experts that are this one's.
  void keep_own_layers();
  // Copies the bound weights to the backend where it cannot use them in place; the host's go. Where they
  // exceed the budget, experts are streamed.
  void place_weights();
  const text::Tokenizer& text() const;  // throws where there is none
  // Computes experts that nodes share, whatever computes the rest.
  std::unique_ptr<ops::Backend> make_processor() const;
  // Gives a device's experts what is left of the budget beside the first session, of so many bytes. Later
  // calls do nothing.
  void place_experts(std::uint64_t session);

 private:
  void keep_experts_alone();
  // Where nodes share experts, processors compute them, though a device may compute all else.
  bool computes_experts_beside() const;
  // Whether an instruction set is asked for beside a device.
  bool isa_is_of_processor() const;
  void stay_beside(std::uint64_t dense, std::uint64_t experts);
  // Prompts in smaller passes, where the limit leaves no room for usual ones beside so many bytes.
  void fit_chunk(std::uint64_t beside);
  bool claim_all(std::uint64_t weights, std::uint64_t experts);
  void stay_within_memory(std::uint64_t dense);
  void stay_within_vram(std::uint64_t dense);
  // What a session takes at least, with a context of so many tokens.
  std::uint64_t least_session(std::int64_t context) const;
};

// Of an engine, for what is built on engines.
Core& core(Engine& engine);
const Core& core(const Engine& engine);

}  // namespace sluice::engine
