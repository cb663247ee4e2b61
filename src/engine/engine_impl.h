// What an engine holds.
#pragma once

#include <optional>

#include "checkpoint/config.h"
#include "checkpoint/weight_store.h"
#include "engine/placement/budget.h"
#include "engine/placement/streaming.h"
#include "engine/placement/upload.h"
#include "models/model.h"
#include "sluice/engine.h"
#include "sluice/ops/backend.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace sluice {

struct Engine::Impl {
  EngineOptions options;
  std::unique_ptr<ops::Backend> backend;
  checkpoint::WeightStore store;
  engine::PlacedModel placed;      // copies on a device with memory of its own
  engine::StreamedModel streamed;  // where experts are not kept in memory
  engine::Budget budget;
  engine::Budget::Claim weights_claim;
  engine::Budget::Claim tier_claim;
  models::Model model;
  ModelSummary summary;
  std::optional<text::Tokenizer> tokenizer;
  std::optional<text::ChatTemplates> templates;
  std::vector<std::int32_t> stop_ids;

  // Checks the options and makes the backend they name.
  void start(const EngineOptions& wanted);
  // What the options leave to the backend: a GPU computes with BF16 and takes long chunks.
  bool fast() const { return !options.exact && !backend->host_memory(); }
  ops::DType activation_type() const { return fast() ? ops::DType::bf16 : ops::DType::f32; }
  state::CacheFormat cache_format() const {
    return {options.cache == CacheType::automatic ? activation_type()
            : options.cache == CacheType::bf16    ? ops::DType::bf16
                                                  : ops::DType::f32,
            options.key_bits, options.value_bits};
  }
  std::int64_t prefill_chunk() const {
    if (options.prefill_chunk > 0) return options.prefill_chunk;
    return backend->host_memory() ? 512 : 4096;
  }
  // Copies the bound weights to the backend where it cannot use them in place; the host's go. Where they
  // exceed the budget, experts are streamed.
  void place_weights();
  const text::Tokenizer& text() const;  // throws where there is none
  // Gives a device's experts what is left of the budget beside the first session, of so many bytes. Later
  // calls do nothing.
  void place_experts(std::uint64_t session);

 private:
  bool claim_all(std::uint64_t experts);
  void stay_within_memory(std::uint64_t dense);
  void stay_within_vram(std::uint64_t dense);
  // What a session takes at least, with a context of so many tokens.
  std::uint64_t least_session(std::int64_t context) const;
};

}  // namespace sluice
