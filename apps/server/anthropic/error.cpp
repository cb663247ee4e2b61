#include "server/anthropic/error.h"

namespace sluice::server::anthropic {

namespace {

const char* type_of(int status) {
  switch (status) {
    case 400:
      return "invalid_request_error";
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

}  // namespace

Json error_body(const ApiError& error, const std::string& request_id) {
  Json body{{"type", "error"}, {"error", {{"type", type_of(error.status)}, {"message", error.message}}}};
  if (error.code == kThreadsUnsupported) body["error"]["details"] = {{"error_code", error.code}};
  if (!request_id.empty()) body["request_id"] = request_id;
  return body;
}

}  // namespace sluice::server::anthropic
