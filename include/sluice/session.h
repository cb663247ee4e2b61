// One timeline of tokens with the model's state for it. A session may be used by one thread at a time, while
// other threads use other sessions of its engine: see engine.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sluice/engine.h"
#include "sluice/sampling.h"
#include "sluice/token_guide.h"

namespace sluice {

// A saved point of a timeline.
class Snapshot {
 public:
  std::int64_t length() const { return static_cast<std::int64_t>(tokens_.size()); }
  std::size_t bytes() const { return state_.size(); }

 private:
  friend class Session;
  std::vector<std::int32_t> tokens_;
  std::vector<float> logits_;
  std::vector<std::byte> state_;
  bool with_caches_ = false;
};

using Progress = std::function<bool(std::int64_t done, std::int64_t all)>;

class Session {
 public:
  ~Session();

  std::int64_t length() const;
  std::int64_t capacity() const;
  std::size_t bytes() const;  // currently on the backend: see Engine::session_bytes
  const std::vector<std::int32_t>& tokens() const;
  Engine& engine();

  // Appends and computes tokens of a prompt. Afterwards logits() are those of the last one.
  void extend(std::span<const std::int32_t> tokens);
  // The same, but calls `go_on` between chunks with the tokens done and in all, and stops if it returns
  // false. Returns whether all tokens were computed. After a stop the session holds the computed tokens,
  // without logits, and can continue from there as if it had been given only those.
  bool extend(std::span<const std::int32_t> tokens, const Progress& go_on);
  // The same, but calls `row` with every token's logits, in order. An exception from `row` ends the call
  // after the current chunk.
  void extend(std::span<const std::int32_t> tokens,
              const std::function<void(std::int64_t position, std::span<const float> logits)>& row);
  // Appends and computes one generated token. GPUs have faster kernels for that, which round differently.
  void step(std::int32_t token);
  // Samples the next token among the first `candidates` ids, on the backend. `allowed` has one bit per token
  // (token i is bit i % 8 of byte i / 8); tokens whose bit is 0 are not chosen. Empty: all are allowed.
  // step_and_sample() appends the token that was sampled last and samples the next one.
  SampledToken sample(const SamplingSettings& settings, std::int64_t candidates,
                      std::span<const std::uint8_t> allowed = {});
  SampledToken step_and_sample(const SamplingSettings& settings, std::int64_t candidates,
                               std::span<const std::uint8_t> allowed = {});
  // Logits of the last token; empty before the first.
  std::span<const float> logits() const;

  void reset();
  // A copy of the whole state, for restore() in any session of the same engine.
  Snapshot snapshot();
  void restore(const Snapshot& snapshot);
  // A cheap point to return to: it copies only the recurrent states, which cannot be truncated later.
  // rewind() returns to it as long as the timeline still begins with the same tokens.
  Snapshot mark();
  void rewind(const Snapshot& mark);

 private:
  friend class Engine;
  struct Impl;
  Snapshot save(bool with_caches);
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct GenerateOptions {
  std::int64_t max_tokens = 256;
  // Until this many tokens, only the guide and the context can end the answer: stop tokens are not chosen and
  // stop texts are ignored.
  std::int64_t min_tokens = 0;
  SamplingSettings sampling;
  std::vector<std::string> stop;  // texts that end the answer and are not part of it
  std::vector<std::int32_t> extra_stop_ids;
  bool ignore_stop_ids = false;
  bool skip_special = true;
  Progress progress = {};  // called between chunks of the prompt; return false to stop there
  int logprobs = 0;        // number of most likely alternatives to report with each token, up to 20
  // Constrains the answer; a guide serves one answer only. Null: no constraint.
  std::shared_ptr<TokenGuide> guide = {};
};

enum class FinishReason { stop, length, cancelled };

struct GeneratedToken {
  std::int32_t id = 0;
  std::string text;  // the text that this token completes; may be empty
  double logprob = 0;
  std::vector<TokenLogprob> top;
};

struct GenerateResult {
  std::string text;
  std::vector<std::int32_t> ids;
  FinishReason reason = FinishReason::length;
  std::int64_t prompt_tokens = 0;
  double prompt_seconds = 0;
  double first_token_seconds = 0;  // from the call to the first sampled token
  double decode_seconds = 0;       // for all tokens after the first
};

// Appends the prompt and generates an answer. `token` sees each token and returns false to stop there.
GenerateResult generate(Session& session, std::span<const std::int32_t> prompt,
                        const GenerateOptions& options,
                        const std::function<bool(const GeneratedToken&)>& token = {});

}  // namespace sluice
