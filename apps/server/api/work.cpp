#include "server/api/work.h"

namespace sluice::server::api {

std::string event(const Json& data, std::string_view name) {
  std::string text;
  if (!name.empty()) text.append("event: ").append(name).append("\n");
  return text.append("data: ").append(dump(data)).append("\n\n");
}

}  // namespace sluice::server::api
