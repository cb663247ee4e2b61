// GET /v1/sluice/cache: what is remembered of prompts, and of the last requests why not more of them was.
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

// What differs from request to request though it means nothing to a model, such as a date or a client's
// billing header; empty: nothing that is known.
std::string volatile_part(const std::string& text);

// Of the last so many requests. From any thread.
class CacheReports {
 public:
  // Says, too, where a request of the same client began like this one under another salt.
  void add(const std::string& id, const std::string& client, const std::string& salt,
           std::span<const std::int32_t> prompt, Json report);
  // One request's, or those of a client with the latest first. Another client's are not there.
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

// The report with texts: of the prompt where it parts from those before.
Json cache_report(const ServedModel& model, std::span<const std::int32_t> prompt, const PromptReport& report);

Json cache_json(const Scheduler& scheduler);

// What is remembered for a client, as a list of nodes, with the texts they begin with or without.
Json remembered_json(const ServedModel& model, const Scheduler& scheduler, const std::string& client,
                     bool texts);

}  // namespace sluice::server::local
