// How the server listens, and what clients may do.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "server/http/limits.h"

namespace sluice::server {

struct ServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;
  std::vector<std::string> api_keys = {};
  bool no_auth = false;  // allow addresses other than this machine's own without keys
  std::vector<std::string> cors_origins = {};
  std::string tls_certificate = {}, tls_key = {};  // files
  http::Limits limits = {};
  double request_seconds = 0;  // limit for one request, including waiting; 0: none
  std::chrono::seconds drain_time{30};
  std::chrono::milliseconds ping_interval{5000};  // of comments while a stream waits for its first token
  std::string access_log = {};                    // a file; "-": standard error; empty: none
  std::string data = {};                          // folder of saved conversations; empty: not saved
  bool cache_per_key = false;                     // clients learn nothing about others' requests
  std::uint64_t stored_response_bytes = 64 << 20;
};

}  // namespace sluice::server
