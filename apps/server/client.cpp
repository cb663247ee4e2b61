#include "server/client.h"

#include <fmt/core.h>

#include <boost/asio/ip/tcp.hpp>

#include "server/json.h"
#include "sluice/error.h"

namespace sluice::server {

namespace {

struct Address {
  std::string host, port;
};

Address parse_address(const std::string& url) {
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme))
    throw Error(ErrorKind::input,
                fmt::format("expected the address of a server as in http://127.0.0.1:8080, not '{}'", url));
  std::string rest = url.substr(kScheme.size());
  rest.resize(std::min(rest.find('/'), rest.size()));
  const std::size_t colon = rest.rfind(':');
  const bool has_port = colon != std::string::npos && rest.find(']', colon) == std::string::npos;
  Address address{rest.substr(0, has_port ? colon : rest.size()), has_port ? rest.substr(colon + 1) : "80"};
  if (address.host.starts_with('[') && address.host.ends_with(']'))
    address.host = address.host.substr(1, address.host.size() - 2);
  return address;
}

// The message in an error's body, or the status if there is none.
std::string reason_of(const std::string& body, const std::string& status) {
  const Json json = parse_or_null(body);
  const Json error = json.is_object() ? json.value("error", Json()) : Json();
  const Json message = error.is_object() ? error.value("message", Json()) : Json();
  return message.is_string() ? message.get<std::string>() : status;
}

// One request. HTTP/1.0 answers are not chunked and end with the connection.
class Exchange {
 public:
  Exchange(const std::string& url, const std::string& key, const std::string& request,
           const std::string& body)
      : url_(url), address_(parse_address(url)), stream_(address_.host, address_.port) {
    if (!stream_) broken("cannot be reached: " + stream_.error().message());
    stream_ << request << " HTTP/1.0\r\nHost: " << address_.host << "\r\nContent-Length: " << body.size()
            << "\r\n";
    if (!key.empty()) stream_ << "Authorization: Bearer " << key << "\r\n";
    stream_ << "\r\n" << body << std::flush;
    std::string status, line;
    std::getline(stream_, status);
    while (std::getline(stream_, line) && line != "\r") continue;
    if (status.find(" 200 ") == std::string::npos)
      broken(status.empty() ? "closed the connection" : reason_of(rest(), status));
  }

  bool line(std::string& to) { return static_cast<bool>(std::getline(stream_, to)); }
  std::string rest() { return {std::istreambuf_iterator<char>(stream_), std::istreambuf_iterator<char>()}; }
  [[noreturn]] void broken(std::string_view what) const {
    throw Error(ErrorKind::resource, fmt::format("{}: {}", url_, what));
  }

 private:
  std::string url_;
  Address address_;
  boost::asio::ip::tcp::iostream stream_;
};

}  // namespace

void ask_server(const std::string& url, const std::string& key, const std::string& path,
                const std::string& body, const std::function<bool(const std::string& data)>& data) {
  Exchange exchange(url, key, "POST " + path, body);
  constexpr std::string_view kData = "data: ";
  std::string line;
  while (exchange.line(line)) {
    if (!line.starts_with(kData)) continue;
    line.erase(0, kData.size());
    if (line == "[DONE]") return;
    const Json json = parse_or_null(line);
    if (json.is_object() && json.contains("error")) exchange.broken(reason_of(line, "the answer failed"));
    if (!data(line)) return;
  }
  exchange.broken("the connection was lost before the answer was complete");
}

std::string get_from_server(const std::string& url, const std::string& key, const std::string& path) {
  return Exchange(url, key, "GET " + path, "").rest();
}

}  // namespace sluice::server
