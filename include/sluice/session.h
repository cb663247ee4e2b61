// One timeline of tokens with everything the model remembers of it. Not for several threads at once, but
// other sessions of its engine may be used meanwhile: see engine.h.
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
  std::size_t bytes() const;  // on the backend, now: see Engine::session_bytes
  const std::vector<std::int32_t>& tokens() const;
  Engine& engine();

  // Appends tokens of a prompt. Afterwards logits() belongs to the last one.
  void extend(std::span<const std::int32_t> tokens);
  // The same, asking between chunks whether to go on: `go_on` hears how many tokens of how many are read.
  // Says whether all were. After a stop the session holds the tokens that were read, without logits, and goes
  // on from there as if no more had been asked for.
  bool extend(std::span<const std::int32_t> tokens, const Progress& go_on);
  // The same, handing every token's logits to `row` in order. What it throws ends the call, behind the chunk
  // that was read.
  void extend(std::span<const std::int32_t> tokens,
              const std::function<void(std::int64_t position, std::span<const float> logits)>& row);
  // Appends one generated token. Devices have faster kernels for that, whose rounding differs.
  void step(std::int32_t token);
  // Chooses the next token among the first `candidates` ids, where the model runs. `allowed` has a bit per
  // token (bit i % 8 of byte i / 8 is that of token i); tokens whose bit is 0 are not chosen. Empty: all are
  // allowed. step_and_sample() appends the token chosen last and chooses the next one.
  SampledToken sample(const SamplingSettings& settings, std::int64_t candidates,
                      std::span<const std::uint8_t> allowed = {});
  SampledToken step_and_sample(const SamplingSettings& settings, std::int64_t candidates,
                               std::span<const std::uint8_t> allowed = {});
  // Of the last token; empty before the first.
  std::span<const float> logits() const;

  void reset();
  // A copy of everything, good for restore() in any session of the same engine.
  Snapshot snapshot();
  void restore(const Snapshot& snapshot);
  // A cheap point to come back to: only what cannot be cut off later is copied. rewind() goes back to it
  // while the timeline still begins with the same tokens.
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
  // Before so many tokens nothing ends the answer but its guide and the context: stop tokens are not chosen
  // and stop texts not looked for.
  std::int64_t min_tokens = 0;
  SamplingSettings sampling;
  std::vector<std::string> stop;  // texts that end the answer and are not part of it
  std::vector<std::int32_t> extra_stop_ids;
  bool ignore_stop_ids = false;
  bool skip_special = true;
  Progress progress = {};  // of the prompt, between its chunks; returns false to stop there
  int logprobs = 0;        // most likely alternatives to report with each token, up to 20
  // Says what may come; it follows one answer only. Without one, anything may.
  std::shared_ptr<TokenGuide> guide = {};
};

enum class FinishReason { stop, length, cancelled };

struct GeneratedToken {
  std::int32_t id = 0;
  std::string text;  // what it completes; may be empty
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

// Appends the prompt and answers. `token` sees each token as it comes and returns false to stop there.
GenerateResult generate(Session& session, std::span<const std::int32_t> prompt,
                        const GenerateOptions& options,
                        const std::function<bool(const GeneratedToken&)>& token = {});

}  // namespace sluice
