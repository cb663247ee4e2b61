// Answers prompts: a session that continues after its last answer or, if a folder caches prompts, a scheduler
// that continues from the longest cached prefix.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "sluice/scheduler.h"

namespace sluice::cli::chat {

class Responder {
 public:
  virtual ~Responder() = default;

  // Called for each token; returning false stops the answer.
  using Show = std::function<bool(const GeneratedToken&)>;
  struct Response {
    GenerateResult result;
    std::int64_t kept = 0;  // tokens of the prompt that were not computed again; the others are in the result
  };
  // Answers the prompt, which is always passed completely.
  virtual Response answer(const std::vector<std::int32_t>& prompt, const GenerateOptions& options,
                          const Show& show) = 0;
  virtual std::int64_t capacity() const = 0;
};

// For options.context tokens; a session if no folder is given.
std::unique_ptr<Responder> make_responder(const std::shared_ptr<Engine>& engine, SchedulerOptions options);

}  // namespace sluice::cli::chat
