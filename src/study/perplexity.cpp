#include "sluice/perplexity.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/integer_cast.h"
#include "engine/core.h"
#include "sampling/logprobs.h"
#include "sluice/session.h"
#include "study/documents.h"
#include "study/windows.h"

namespace sluice {

constexpr std::int64_t kReportEvery = 256;  // tokens per report: a window may be as long as the context

PerplexityResult measure_perplexity(Engine& engine, std::string_view text, const PerplexityOptions& options,
                                    const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  const std::vector<std::string_view> all = study::split_documents(text);
  if (all.empty()) fail(ErrorKind::input, "there is no text to score");
  const auto end = engine::core(engine).text().id(study::kEndOfDocument);
  const std::int64_t context = options.context != 0 ? options.context : engine.summary().max_positions;
  const std::int64_t stride = options.stride != 0 ? options.stride : context;
  if (stride < 1 || stride > context)
    fail(ErrorKind::input, "a stride of {} tokens does not fit windows of {}", stride, context);
  const auto session = engine.new_session(context);
  PerplexityResult result;
  double nats = 0;
  std::uint64_t done = 0;
  for (const std::string_view document : all) {
    std::vector<std::int32_t> ids = engine.encode(document);
    if (end) ids.push_back(*end);
    const auto count = std::ssize(ids);
    const auto tell = [&](std::int64_t read) {
      const auto part = to_double(read) / to_double(count);
      if (progress)
        progress(done + static_cast<std::uint64_t>(part * to_double(document.size())), text.size());
    };
    for (const study::Window& window : study::rolling_windows(count, context, stride)) {
      session->reset();
      session->extend(std::span(ids).subspan(to_size(window.begin), to_size(window.end - window.begin)),
                      [&](std::int64_t position, std::span<const float> logits) {
                        const std::int64_t next = window.begin + position + 1;
                        if (next < window.target) return;
                        nats -= sampling::Logprobs(logits)[ids[next]];
                        if (next % kReportEvery == 0) tell(next);
                      });
      ++result.windows;
      tell(window.end);
    }
    result.tokens += count - 1;
    result.bytes += document.size();
    ++result.documents;
    done += document.size();
  }
  result.nats_per_token = nats / to_double(std::max<std::int64_t>(result.tokens, 1));
  result.bits_per_byte = nats / std::numbers::ln2 / to_double(result.bytes);
  return result;
}

}  // namespace sluice
