// GET /v1/sluice/cache: what is cached, and why not more of recent prompts was.
#pragma once

#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "server/json.h"
#include "server/served_model.h"
#include "sluice/scheduler.h"

namespace sluice::server::local {

// "cached=640; recomputed=80; from_host=0; from_disk=640; decoded=0; reason=end", for a header.
std::string cache_header(const PromptReport& report);

// A part that differs from request to request without meaning anything to a model, such as a date or a
// client's billing header; empty: none is known.
std::string volatile_part(const std::string& text);

// Reports of the most recent requests. Callable from any thread.
class CacheReports {
 public:
  // Also notes if a request of the same client began like this one under another salt.
  void add(const std::string& id, const std::string& client, const std::string& salt,
           std::span<const std::int32_t> prompt, Json report);
  // One request's report, or all of a client, latest first. Other clients' reports are not visible.
  Json find(const std::string& client, const std::string& id) const;
  Json list(const std::string& client) const;

 private:
  struct One {
    std::string id, client, salt;
    std::vector<std::int32_t> beginning;
    Json report;
  };
  mutable std::mutex mutex_;
  std::deque<One> reports_;
};

// The report with texts around the point where the prompt diverges from earlier ones.
Json cache_report(const ServedModel& model, std::span<const std::int32_t> prompt, const PromptReport& report);

Json cache_json(const Scheduler& scheduler);

// What is cached for a client, as a list of nodes, with or without the texts they begin with.
Json remembered_json(const ServedModel& model, const Scheduler& scheduler, const std::string& client,
                     bool texts);

}  // namespace sluice::server::local
