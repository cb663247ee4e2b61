// Bytes from a socket: heads and bodies of HTTP requests under the server's limits, their paths, and access
// control.
#include <boost/beast/http.hpp>
#include <cstdint>
#include <string>

#include "server/http/access.h"
#include "server/http/limits.h"
#include "server/http/message.h"

namespace beast = boost::beast::http;
namespace http = sluice::server::http;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const http::Access access({{"secret"}, {"https://good.example"}, true});
  const http::Limits limits;
  beast::request_parser<beast::string_body> parser;
  parser.header_limit(limits.header_bytes);
  parser.body_limit(1 << 16);
  parser.eager(true);
  boost::system::error_code error;
  parser.put(boost::asio::buffer(data, size), error);
  if (!parser.is_header_done()) return 0;
  const auto& message = parser.get();
  std::string path;
  http::decode_path(std::string_view(message.target().data(), message.target().size()), path);
  const auto header = [&](const char* name) {
    const auto value = message[name];
    return std::string_view(value.data(), value.size());
  };
  const http::Credentials credentials{header("Authorization"), header("X-Api-Key"), header("Origin"),
                                      header("Host")};
  if (access.client(credentials) && header("X-Api-Key") != "secret" &&
      header("Authorization") != "Bearer secret")
    __builtin_trap();
  access.allows_page(credentials);
  return 0;
}
