#include "sluice/perplexity.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "engine/core.h"
#include "sampling/logprobs.h"
#include "sluice/session.h"
#include "study/documents.h"

namespace sluice {

PerplexityResult measure_perplexity(Engine& engine, std::string_view text, std::int64_t context,
                                    const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  const std::vector<std::string_view> all = study::split_documents(text);
  if (all.empty()) fail(ErrorKind::input, "there is no text to score");
  const auto end = engine::core(engine).text().id(study::kEndOfDocument);
  const std::int64_t limit = context > 0 ? context : engine.summary().max_positions;
  const auto session = engine.new_session(limit);
  PerplexityResult result;
  double nats = 0;
  std::uint64_t done = 0;
  for (const std::string_view document : all) {
    std::vector<std::int32_t> ids = engine.encode(document);
    if (end) ids.push_back(*end);
    if (static_cast<std::int64_t>(ids.size()) > limit) ids.resize(static_cast<std::size_t>(limit));
    session->reset();
    session->extend(ids, [&](std::int64_t position, std::span<const float> logits) {
      const auto next = static_cast<std::size_t>(position) + 1;
      if (next < ids.size()) nats -= sampling::Logprobs(logits)[ids[next]];
    });
    result.tokens += static_cast<std::int64_t>(ids.size()) - 1;
    result.bytes += document.size();
    ++result.documents;
    done += document.size();
    if (progress) progress(done, text.size());
  }
  result.nats_per_token = nats / static_cast<double>(std::max<std::int64_t>(result.tokens, 1));
  result.bits_per_byte = nats / std::numbers::ln2 / static_cast<double>(result.bytes);
  return result;
}

}  // namespace sluice
