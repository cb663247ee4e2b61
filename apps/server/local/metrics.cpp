#include "server/local/metrics.h"

#include <fmt/core.h>

#include <algorithm>

namespace sluice::server::local {

namespace {

template <class T>
std::string metric(std::string_view name, std::string_view type, std::string_view help, T value) {
  return fmt::format("# HELP sluice_{0} {1}\n# TYPE sluice_{0} {2}\nsluice_{0} {3}\n", name, help, type,
                     value);
}

std::string scheduler_text(const Scheduler& scheduler) {
  const SchedulerState state = scheduler.state();
  const auto in_phase = [&](SchedulerState::Phase phase) {
    return std::count_if(state.sequences.begin(), state.sequences.end(),
                         [phase](const auto& sequence) { return sequence.phase == phase; });
  };
  const EngineMemory memory = scheduler.engine().memory();
  std::string text;
  text += metric("requests_waiting", "gauge", "Requests in the queue.", state.waiting);
  text += metric("requests_reading", "gauge", "Sequences whose prompt is read.",
                 in_phase(SchedulerState::Phase::reading));
  text += metric("requests_decoding", "gauge", "Sequences that generate.",
                 in_phase(SchedulerState::Phase::decoding));
  text += metric("requests_suspended", "gauge", "Sequences that made room for others.",
                 in_phase(SchedulerState::Phase::suspended));
  text += metric("slots", "gauge", "Sequences that can run at once.", state.parallel);
  text += metric("cache_tokens", "gauge", "Tokens whose cache fits.", state.cache_tokens);
  text += metric("cache_tokens_used", "gauge", "Tokens whose cache is in use.", state.cache_tokens_used);
  text += metric("requests_total", "counter", "Requests that came.", state.requests);
  text += metric("requests_finished_total", "counter", "Requests that were answered.", state.finished);
  text += metric("requests_cancelled_total", "counter", "Requests whose clients left.", state.cancelled);
  text += metric("requests_failed_total", "counter", "Requests that failed.", state.failed);
  text += metric("requests_refused_total", "counter", "Requests that found the queue full.", state.refused);
  text += metric("suspensions_total", "counter", "Sequences that had to make room.", state.suspensions);
  text += metric("prompt_tokens_total", "counter", "Tokens of prompts.", state.prompt_tokens);
  text +=
      metric("cached_tokens_total", "counter", "Of them, found in the prefix cache.", state.cached_tokens);
  text +=
      metric("cache_memory_bytes", "gauge", "Bytes of host memory with cached prompts.", state.memory_bytes);
  text += metric("cache_memory_limit_bytes", "gauge", "Limit of host memory for cached prompts.",
                 scheduler.options().cache_memory);
  text += metric("cache_disk_bytes", "gauge", "Bytes of cached prompts in files.", state.disk_bytes);
  text += metric("generated_tokens_total", "counter", "Tokens generated.", state.generated_tokens);
  text += metric("decode_steps_total", "counter", "Steps of all running sequences.", state.decode_steps);
  text += "# HELP sluice_memory_bytes Bytes on the backend, by kind.\n# TYPE sluice_memory_bytes gauge\n";
  for (const auto& [kind, bytes] :
       {std::pair("sessions", memory.sessions), std::pair("shared", memory.shared),
        std::pair("programs", memory.programs), std::pair("allocated", memory.allocated)})
    text += fmt::format("sluice_memory_bytes{{kind=\"{}\"}} {}\n", kind, bytes);
  return text;
}

}  // namespace

void Histogram::observe(double value) {
  const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  ++counts_[at];
  sum_ += value;
}

std::string Histogram::text(std::string_view name, std::string_view help) const {
  std::string text = fmt::format("# HELP sluice_{0} {1}\n# TYPE sluice_{0} histogram\n", name, help);
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < bounds_.size(); ++i)
    text += fmt::format("sluice_{}_bucket{{le=\"{}\"}} {}\n", name, bounds_[i], below += counts_[i]);
  below += counts_.back();
  text += fmt::format("sluice_{0}_bucket{{le=\"+Inf\"}} {1}\nsluice_{0}_sum {2}\nsluice_{0}_count {1}\n",
                      name, below, sum_);
  return text;
}

void Metrics::observe(std::span<const double> intervals, bool first) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < intervals.size(); ++i)
    (first && i == 0 ? first_token_ : interval_).observe(intervals[i]);
}

void Metrics::count_request(int status) {
  const std::lock_guard lock(mutex_);
  ++requests_[status];
}

void Metrics::connections(std::size_t open) {
  const std::lock_guard lock(mutex_);
  connections_ = open;
}

std::string Metrics::text(const Scheduler* scheduler) const {
  std::string text = scheduler == nullptr ? "" : scheduler_text(*scheduler);
  const std::lock_guard lock(mutex_);
  text += metric("http_connections", "gauge", "Open connections.", connections_);
  text += "# HELP sluice_http_requests_total Answers by status.\n# TYPE sluice_http_requests_total counter\n";
  for (const auto& [status, count] : requests_)
    text += fmt::format("sluice_http_requests_total{{status=\"{}\"}} {}\n", status, count);
  text += first_token_.text("time_to_first_token_seconds", "From a request's arrival to its first token.");
  text += interval_.text("time_between_tokens_seconds", "Between two tokens of a sequence.");
  return text;
}

}  // namespace sluice::server::local
