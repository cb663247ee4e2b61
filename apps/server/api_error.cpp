#include "server/api_error.h"

#include <new>

#include "sluice/error.h"

namespace sluice::server {

ApiError bad_request(std::string message, std::string param, std::string code) {
  ApiError error(400, "invalid_request_error", std::move(message));
  error.param = std::move(param);
  error.code = std::move(code);
  return error;
}

ApiError context_exceeded(std::string message, std::string param) {
  return bad_request(std::move(message), std::move(param), "context_length_exceeded");
}

ApiError not_found(std::string message, std::string code) {
  ApiError error(404, "invalid_request_error", std::move(message));
  error.code = std::move(code);
  return error;
}

ApiError overloaded(std::string message) {
  ApiError error(429, "rate_limit_error", std::move(message));
  error.code = "rate_limit_exceeded";
  error.retry_after = 1;
  return error;
}

ApiError unavailable(std::string message) {
  ApiError error(503, "service_unavailable", std::move(message));
  error.retry_after = 1;
  return error;
}

ApiError api_error(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const ApiError& known) {
    return known;
  } catch (const Error& failed) {
    if (failed.kind() == ErrorKind::input) return bad_request(failed.what());
    if (failed.kind() == ErrorKind::unsupported) return bad_request(failed.what(), {}, "unsupported");
    if (failed.kind() == ErrorKind::busy) return overloaded(failed.what());
    // Other errors do not concern clients, and may contain names of files.
    return {500, "server_error", "the model failed to answer this request"};
  } catch (const std::bad_alloc&) {
    return unavailable("the server is out of memory");
  } catch (const std::exception&) {
    return {500, "server_error", "the server failed to answer this request"};
  }
}

}  // namespace sluice::server
