// The error that a client is told, before a protocol formats it.
#pragma once

#include <exception>
#include <string>

namespace sluice::server {

class ApiError : public std::exception {
 public:
  ApiError(int status, std::string type, std::string message)
      : status(status), type(std::move(type)), message(std::move(message)) {}

  const char* what() const noexcept override { return message.c_str(); }

  int status;
  std::string type;  // in terms of OpenAI's protocol: invalid_request_error, server_error, ...
  std::string message;
  std::string code = {};  // context_length_exceeded, ...; empty: null
  std::string param = {};
  int retry_after = 0;  // seconds; 0: none
};

ApiError bad_request(std::string message, std::string param = {}, std::string code = {});
ApiError context_exceeded(std::string message, std::string param);
ApiError not_found(std::string message, std::string code = {});
ApiError overloaded(std::string message);   // 429
ApiError unavailable(std::string message);  // 503

// The error to report for an exception. What only the machine's owner may know, such as a path, is left out.
ApiError api_error(const std::exception_ptr& error);

}  // namespace sluice::server
