// Requests and responses in the form that handlers use.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::server::http {

struct Request {
  std::string method;
  std::string path;  // decoded, without the query and without a leading /v1
  std::string query;
  std::string body;
  std::string id;      // assigned by this server, also sent in the answer
  std::string client;  // identifies the client for fair scheduling: a digest of its key, or its address
};

struct Response {
  int status = 200;
  std::string body = {};
  std::string type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
};

std::string_view reason_phrase(int status);
// "%20" becomes a blank; false if an escape is invalid or encodes a NUL.
bool decode_path(std::string_view text, std::string& decoded);

}  // namespace sluice::server::http
