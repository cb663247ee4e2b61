#include "json.h"

namespace sluice::cli {

std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sluice::cli
