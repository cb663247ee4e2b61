#include "server/local/cache_reports.h"

#include <fmt/core.h>

#include <algorithm>
#include <regex>

#include "server/api_error.h"

namespace sluice::server::local {

namespace {

constexpr std::size_t kMostReports = 1000;
constexpr std::size_t kBlock = 64;         // tokens that are cached together
constexpr std::int64_t kAround = 16;       // tokens of text before and after
constexpr std::int64_t kBeginning = 1024;  // tokens in which volatile parts are searched

std::string text_between(const ServedModel& model, std::span<const std::int32_t> prompt, std::int64_t begin,
                         std::int64_t end) {
  const auto all = std::ssize(prompt);
  begin = std::clamp<std::int64_t>(begin, 0, all);
  end = std::clamp<std::int64_t>(end, begin, all);
  if (!model.engine->has_tokenizer()) return {};
  return model.engine->decode(prompt.subspan(begin, static_cast<std::size_t>(end - begin)), false);
}

}  // namespace

std::string cache_header(const PromptReport& report) {
  return fmt::format("cached={}; recomputed={}; from_host={}; from_disk={}; decoded={}; reason={}",
                     report.cached, report.tokens - report.cached, report.from_host, report.from_disk,
                     report.decoded, name(report.reason));
}

std::string volatile_part(const std::string& text) {
  static const std::pair<std::regex, const char*> kKnown[] = {
      {std::regex("billing-header|cch=[0-9a-f]"), "a client's billing header"},
      {std::regex("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "an identifier"},
      {std::regex("[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?"), "a time of day"},
      {std::regex("[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{2,4}|"
                  "(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* [0-9]{1,2}"),
       "a date"},
  };
  for (const auto& [pattern, meaning] : kKnown)
    if (std::regex_search(text, pattern)) return meaning;
  return {};
}

Json cache_report(const ServedModel& model, std::span<const std::int32_t> prompt,
                  const PromptReport& report) {
  Json json{{"prompt_tokens", report.tokens},   {"cached_tokens", report.cached},
            {"from_host", report.from_host},    {"from_disk", report.from_disk},
            {"decoded_tokens", report.decoded}, {"recomputed_tokens", report.tokens - report.cached},
            {"agreeing_tokens", report.common}, {"reason", name(report.reason)}};
  if (report.other_options) json["other_options"] = true;
  if (report.reason == PromptReport::Reason::off || report.common >= report.tokens) return json;
  const std::string before = text_between(model, prompt, report.common - kAround, report.common);
  const std::string behind = text_between(model, prompt, report.common, report.common + kAround);
  json["parts_behind"] = before;
  json["parts_with"] = behind;
  if (report.instead >= 0) json["instead_of"] = text_between(model, std::span(&report.instead, 1), 0, 1);
  if (report.common > kBeginning) return json;
  const std::string found = volatile_part(before + behind);
  if (!found.empty()) json["volatile"] = found;
  return json;
}

void CacheReports::add(const std::string& id, const std::string& client, const std::string& salt,
                       std::span<const std::int32_t> prompt, Json report) {
  const auto block = prompt.first(std::min(prompt.size(), kBlock));
  const std::lock_guard lock(mutex_);
  report["request"] = id;
  const auto salted = [&](const One& one) {
    return one.client == client && one.salt != salt && std::ranges::equal(one.beginning, block);
  };
  if (report.value("agreeing_tokens", std::size_t{0}) < block.size() && std::ranges::any_of(reports_, salted))
    report["other_salt"] = true;
  reports_.push_front({id, client, salt, {block.begin(), block.end()}, std::move(report)});
  if (reports_.size() > kMostReports) reports_.pop_back();
}

Json CacheReports::find(const std::string& client, const std::string& id) const {
  const std::lock_guard lock(mutex_);
  for (const One& one : reports_)
    if (one.client == client && one.id == id) return one.report;
  throw not_found(fmt::format("There is no report of request '{}'.", id));
}

Json CacheReports::list(const std::string& client) const {
  const std::lock_guard lock(mutex_);
  Json all = Json::array();
  for (const One& one : reports_)
    if (one.client == client) all.push_back(one.report);
  return all;
}

Json remembered_json(const ServedModel& model, const Scheduler& scheduler, const std::string& client,
                     bool texts) {
  Json nodes = Json::array();
  const auto tiers = [](bool device, bool host, bool disk) {
    Json names = Json::array();
    if (device) names.push_back("device");
    if (host) names.push_back("host");
    if (disk) names.push_back("disk");
    return names;
  };
  for (const RememberedPrefix& one : scheduler.remembered(client, "")) {
    Json node{{"parent", one.parent},
              {"begin", one.begin},
              {"end", one.end},
              {"on_device", one.on_device},
              {"on_host", one.on_host},
              {"on_disk", one.on_disk},
              {"state", tiers(one.state_on_device, one.state_on_host, one.state_on_disk)},
              {"bytes", one.bytes},
              {"hits", one.hits}};
    if (texts) node["text"] = text_between(model, one.ids, 0, kAround * 2);
    nodes.push_back(std::move(node));
  }
  return {{"nodes", std::move(nodes)}};
}

Json cache_json(const Scheduler& scheduler) {
  const SchedulerState state = scheduler.state();
  return {{"remembered_tokens", state.remembered_tokens},
          {"memory_bytes", state.memory_bytes},
          {"disk_bytes", state.disk_bytes},
          {"prompt_tokens", state.prompt_tokens},
          {"cached_tokens", state.cached_tokens}};
}

}  // namespace sluice::server::local
