// Requests and responses as handlers see them.
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
  std::string id;  // ours, in the answer too
  std::string
      client;  // whose share of the machine it uses: a digest of its key, or the address it comes from
};

struct Response {
  int status = 200;
  std::string body = {};
  std::string type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
};

std::string_view reason_phrase(int status);
// "%20" is a blank again; false where the escapes make no sense or hide a NUL.
bool decode_path(std::string_view text, std::string& decoded);

}  // namespace sluice::server::http
