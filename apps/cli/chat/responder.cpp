#include "chat/responder.h"

#include <algorithm>
#include <atomic>
#include <future>

#include "terminal/signals.h"

namespace sluice::cli::chat {

namespace {

class SessionResponder final : public Responder {
 public:
  SessionResponder(Engine& engine, std::int64_t context) : session_(engine.new_session(context)) {}

  Response answer(const std::vector<std::int32_t>& prompt, const GenerateOptions& options,
                  const Show& show) override {
    const std::vector<std::int32_t>& read = session_->tokens();
    if (read.size() >= prompt.size() || !std::equal(read.begin(), read.end(), prompt.begin()))
      session_->reset();
    const std::int64_t kept = session_->length();
    try {
      return {generate(*session_, std::span(prompt).subspan(kept), options, show), kept};
    } catch (...) {
      session_->reset();
      throw;
    }
  }
  std::int64_t capacity() const override { return session_->capacity(); }

 private:
  std::unique_ptr<Session> session_;
};

class RememberingResponder final : public Responder {
 public:
  RememberingResponder(const std::shared_ptr<Engine>& engine, const SchedulerOptions& options)
      : scheduler_(engine, options) {}

  Response answer(const std::vector<std::int32_t>& prompt, const GenerateOptions& options,
                  const Show& show) override {
    std::promise<RequestResult> done;
    std::atomic<bool> stopped = false;
    const RequestHandle handle =
        scheduler_.submit({.prompt = prompt, .options = options},
                          {.token = [&](const GeneratedToken& token) { stopped = stopped || !show(token); },
                           .done = [&](const RequestResult& result) { done.set_value(result); }});
    std::future<RequestResult> finished = done.get_future();
    constexpr std::chrono::milliseconds kMoment{20};
    while (finished.wait_for(kMoment) != std::future_status::ready)
      if (stopped || terminal::interrupted()) handle.cancel();
    RequestResult result = finished.get();
    if (result.error) std::rethrow_exception(result.error);
    result.generated.prompt_tokens -= std::min(result.generated.prompt_tokens, result.prompt.cached);
    return {std::move(result.generated), result.prompt.cached};
  }
  std::int64_t capacity() const override { return scheduler_.options().context; }

 private:
  Scheduler scheduler_;
};

}  // namespace

std::unique_ptr<Responder> make_responder(const std::shared_ptr<Engine>& engine, SchedulerOptions options) {
  if (options.cache_folder.empty()) return std::make_unique<SessionResponder>(*engine, options.context);
  options.parallel = 1;
  return std::make_unique<RememberingResponder>(engine, options);
}

}  // namespace sluice::cli::chat
