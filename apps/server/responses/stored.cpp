#include "server/responses/stored.h"

#include <charconv>
#include <limits>

#include "server/api_error.h"

namespace sluice::server::responses {

namespace {

// The value of a name in "a=1&b=2"; empty if it is missing.
std::string_view query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), one.size() + 1));
    if (one.starts_with(name) && one.substr(name.size()).starts_with('=')) return one.substr(name.size() + 1);
  }
  return {};
}

}  // namespace

Json show(Store& store, const std::string& client, const std::string& rest) {
  const std::size_t slash = rest.find('/');
  if (slash == std::string::npos) return store.show(client, rest).response;
  if (rest.substr(slash) != "/input_items") throw not_found("There is nothing at this path.");
  Json items = store.show(client, rest.substr(0, slash)).input;
  return {{"object", "list"}, {"data", items}, {"has_more", false}};
}

std::optional<api::Following> follow(Store& store, const std::string& client, const std::string& rest,
                                     const std::string& query) {
  if (rest.find('/') != std::string::npos || query_value(query, "stream") != "true") return {};
  api::Following following{.recording = store.show(client, rest).recording};
  if (!following.recording)
    throw bad_request("Only responses that were created with 'background' and 'stream' are streamed again.",
                      "stream", "invalid_value");
  if (const auto after = query_value(query, "starting_after"); !after.empty()) {
    const auto [end, error] = std::from_chars(after.data(), after.data() + after.size(), following.from);
    if (error != std::errc() || end != after.data() + after.size() || following.from < 0 ||
        following.from == std::numeric_limits<std::int64_t>::max())
      throw bad_request("Invalid 'starting_after': expected the number of an event.", "starting_after",
                        "invalid_value");
    ++following.from;
  }
  if (following.from < following.recording->first())
    throw bad_request("The events up to there are no longer kept.", "starting_after", "invalid_value");
  return following;
}

Json cancel(Store& store, const std::string& client, const std::string& rest) {
  const std::size_t slash = rest.find('/');
  if (slash == std::string::npos || rest.substr(slash) != "/cancel")
    throw not_found("There is nothing at this path.");
  const std::string id = rest.substr(0, slash);
  if (const auto cancelled = store.cancel(client, id)) return cancelled->response;
  Json response = store.get(client, id).response;
  if (response["status"] == "cancelled") return response;
  throw bad_request("This response is already done.", "response_id");
}

}  // namespace sluice::server::responses
