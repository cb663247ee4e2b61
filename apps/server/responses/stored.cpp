#include "server/responses/stored.h"

#include "server/api/api_error.h"

namespace sluice::server::responses {

Json show(Store& store, const std::string& client, const std::string& rest) {
  const std::size_t slash = rest.find('/');
  if (slash == std::string::npos) return store.get(client, rest).response;
  if (rest.substr(slash) != "/input_items") throw not_found("There is nothing at this path.");
  Json items = store.get(client, rest.substr(0, slash)).input;
  return {{"object", "list"}, {"data", items}, {"has_more", false}};
}

Json cancel(Store& store, const std::string& client, const std::string& rest) {
  const std::size_t slash = rest.find('/');
  if (slash == std::string::npos || rest.substr(slash) != "/cancel")
    throw not_found("There is nothing at this path.");
  const std::string id = rest.substr(0, slash);
  if (store.cancel(client, id)) return {{"id", id}, {"object", "response"}, {"status", "cancelled"}};
  const Json response = store.get(client, id).response;
  if (response["status"] == "cancelled") return response;
  throw bad_request("This response is already done.", "response_id");
}

}  // namespace sluice::server::responses
