// What an engine holds.
#pragma once

#include <optional>

#include "checkpoint/config.h"
#include "checkpoint/weight_store.h"
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
  models::Model model;
  ModelSummary summary;
  std::optional<text::Tokenizer> tokenizer;
  std::optional<text::ChatTemplates> templates;
  std::vector<std::int32_t> stop_ids;

  ops::DType cache_type() const {
    return options.cache == CacheType::bf16 ? ops::DType::bf16 : ops::DType::f32;
  }
  const text::Tokenizer& text() const;  // throws where there is none
};

}  // namespace sluice
