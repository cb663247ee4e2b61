#include "sluice/cache_quality.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/integer_cast.h"
#include "engine/executor.h"
#include "sampling/argmax.h"
#include "study/documents.h"

namespace sluice {

namespace {

// The documents joined, each followed by the end token.
std::vector<std::int32_t> join(Engine& engine, std::string_view text) {
  const auto end = engine::core(engine).text().id(study::kEndOfDocument);
  std::vector<std::int32_t> ids;
  for (const std::string_view document : study::split_documents(text)) {
    const std::vector<std::int32_t> own = engine.encode(document);
    ids.insert(ids.end(), own.begin(), own.end());
    if (end) ids.push_back(*end);
  }
  return ids;
}

// Log-probabilities.
std::vector<double> log_softmax(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit) - largest);
  std::vector<double> result;
  for (const float logit : logits) result.push_back(static_cast<double>(logit) - largest - std::log(total));
  return result;
}

// KL(p || q), from log-probabilities.
double divergence(const std::vector<double>& p, const std::vector<double>& q) {
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += std::exp(p[i]) * (p[i] - q[i]);
  return sum;
}

// One model run over one context in chunks, with every row read from the caches.
class Replay {
 public:
  Replay(Engine& engine, std::int64_t context)
      : executor_(*engine::core(engine).executor),
        group_(executor_.reserve({1, context})),
        vocab_(to_size(engine::core(engine).model.decoder.vocab)) {}

  void reset() {
    executor_.run([&] { group_->pass.pool().reset(0); });
  }
  std::int64_t chunk() const { return group_->pass.chunk(); }
  void run(std::int64_t start, std::span<const std::int32_t> ids) {
    executor_.run([&] {
      const auto rows = std::ssize(ids);
      group_->pass.run({ops::Phase::prefill, {{0, start, ids, rows}}, true});
      group_->pass.read_logits(logits_);
    });
  }
  std::span<const float> row(std::size_t i) const {
    return std::span<const float>(logits_).subspan(i * vocab_, vocab_);
  }

 private:
  engine::Executor& executor_;
  std::shared_ptr<engine::SlotGroup> group_;
  std::size_t vocab_;
  std::vector<float> logits_;
};

}  // namespace

CacheQuality compare_caches(Engine& engine, Engine& against, std::string_view text, std::int64_t context,
                            std::int64_t contexts,
                            const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  if (context < 2 || context > engine.summary().max_positions || contexts < 0)
    fail(ErrorKind::input, "{} contexts of {} tokens cannot be compared, the model allows 2 to {} tokens",
         contexts, context, engine.summary().max_positions);
  const std::vector<std::int32_t> all = join(engine, text);
  const auto whole = std::ssize(all) / context;
  const std::int64_t count = contexts == 0 ? whole : std::min(contexts, whole);
  if (count == 0)
    fail(ErrorKind::input, "the text has {} tokens, less than one context of {}", all.size(), context);
  Replay ours(engine, context);
  Replay theirs(against, context);
  const std::int64_t chunk = std::min(ours.chunk(), theirs.chunk());
  CacheQuality result;
  for (std::int64_t c = 0; c < count; ++c) {
    const auto ids = std::span(all).subspan(to_size(c * context), to_size(context));
    ours.reset();
    theirs.reset();
    double of_context = 0;
    for (std::int64_t at = 0; at < context; at += chunk) {
      const auto part = ids.subspan(to_size(at), to_size(std::min(chunk, context - at)));
      ours.run(at, part);
      theirs.run(at, part);
      for (std::size_t i = 0; i < part.size(); ++i) {
        const std::size_t next = to_size(at) + i + 1;
        if (next >= ids.size()) break;
        const std::vector<double> p = log_softmax(theirs.row(i));
        const std::vector<double> q = log_softmax(ours.row(i));
        of_context += divergence(p, q);
        result.nats_per_token -= q[ids[next]];
        result.nats_per_token_against -= p[ids[next]];
        result.agreement += sampling::argmax(theirs.row(i)) == sampling::argmax(ours.row(i)) ? 1 : 0;
      }
    }
    result.divergence += of_context;
    result.worst_context = std::max(result.worst_context, of_context / to_double(context - 1));
    if (progress) progress(static_cast<std::uint64_t>(c + 1), static_cast<std::uint64_t>(count));
  }
  result.contexts = count;
  result.tokens = count * (context - 1);
  for (double* sum :
       {&result.nats_per_token, &result.nats_per_token_against, &result.divergence, &result.agreement})
    *sum /= to_double(result.tokens);
  return result;
}

}  // namespace sluice
