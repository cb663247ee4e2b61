// The members of an engine.
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

// Bytes in memory besides weights, caches and activations: on the host the program itself, tables of the
// experts' positions and a tokenizer, on a device those of its driver.
std::uint64_t process_bytes(const models::Model& model, const ops::Traits& traits);

// The prompt tokens per pass that memory allows: the usual number, halved until
// `fits(chunk)`.
template <class F>
std::int64_t fitting_chunk(std::int64_t usual, F&& fits) {
  constexpr std::int64_t kLeast = 64;
  std::int64_t chunk = usual;
  while (chunk > kLeast && !fits(chunk)) chunk = std::max(kLeast, chunk / 2);
  return chunk;
}

// The cache of compiled answer formats. Created on first use.
struct AnswerCache {
  std::mutex mutex;
  std::shared_ptr<GrammarCache> grammars;
  std::optional<std::string> call_probe;  // the chat template's rendering of a probe call
};

struct Core {
  Core();
  ~Core();

  EngineOptions options;
  Settings settings;
  std::unique_ptr<ops::Backend> backend;
  checkpoint::WeightStore store;
  placement::PlacedModel placed;      // copies on a device with memory of its own
  placement::StreamedModel streamed;  // for experts that are not all in memory
  placement::Budget budget;
  placement::Budget host_budget;  // for experts that the CPU computes beside a device
  placement::Budget::Claim weights_claim;
  placement::Budget::Claim tier_claim;
  models::Model model;
  ModelSummary summary;  // of the complete model, whichever nodes hold it
  std::optional<text::Tokenizer> tokenizer;
  std::optional<text::ChatTemplates> templates;
  std::vector<std::int32_t> stop_ids;
  mutable AnswerCache answers;
  std::unique_ptr<Executor> executor;  // last, because it uses all of the above until it is destroyed

  // Checks the options and creates their backend.
  void start(const EngineOptions& wanted);
  // If nodes share the model: keeps only this node's layers and experts.
  void keep_own_layers();
  // Copies the bound weights to the backend if it cannot use them in place, and releases the host's. If they
  // exceed the budget, experts are streamed.
  void place_weights();
  const text::Tokenizer& text() const;  // throws if there is none
  // Creates the backend that computes shared experts, whatever computes the rest.
  std::unique_ptr<ops::Backend> make_processor() const;
  // Gives a device's experts what the first session, of that many bytes, leaves of the budget. Later calls do
  // nothing.
  void place_experts(std::uint64_t session);

 private:
  void keep_experts_alone();
  // Whether the CPU computes the experts that nodes share, beside a device that computes the rest.
  bool computes_experts_beside() const;
  // Whether an instruction set was requested beside a device.
  bool isa_is_of_processor() const;
  void stay_beside(std::uint64_t dense, std::uint64_t experts);
  // Makes prompt passes smaller if the limit has no room for usual ones beside that many bytes.
  void fit_chunk(std::uint64_t beside);
  bool claim_all(std::uint64_t weights, std::uint64_t experts);
  void stay_within_memory(std::uint64_t dense);
  void stay_within_vram(std::uint64_t dense);
  // The least bytes of a session with a context of that many tokens.
  std::uint64_t least_session(std::int64_t context) const;
};

// The core of an engine, for code that is built on engines.
Core& core(Engine& engine);
const Core& core(const Engine& engine);

}  // namespace sluice::engine
