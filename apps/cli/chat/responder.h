// Who reads a prompt and answers it: a session that goes on where its last answer ended or, where a folder
// remembers prompts, a scheduler that begins where one of them agrees.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "sluice/scheduler.h"

namespace sluice::cli {

class Responder {
 public:
  virtual ~Responder() = default;

  // Hears each token; false stops the answer.
  using Show = std::function<bool(const GeneratedToken&)>;
  struct Response {
    GenerateResult result;
    std::int64_t kept =
        0;  // tokens of the prompt that did not have to run again; the others are the result's
  };
  // Answers the prompt, given whole whatever was read of it before.
  virtual Response answer(const std::vector<std::int32_t>& prompt, const GenerateOptions& options,
                          const Show& show) = 0;
  virtual std::int64_t capacity() const = 0;
};

// For options.context tokens; a session where no folder is named.
std::unique_ptr<Responder> make_responder(const std::shared_ptr<Engine>& engine, SchedulerOptions options);

}  // namespace sluice::cli
