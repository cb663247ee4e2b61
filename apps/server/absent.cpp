// For builds without Boost: the command reports that.
#include "server/server.h"

#include "server/client.h"
#include "sluice/error.h"

namespace sluice::server {

struct Server::Impl {};

Server::Server(const ServerOptions&) {
  throw Error(ErrorKind::unsupported,
              "this program was built without a server: Boost 1.81 and OpenSSL were missing");
}

Server::~Server() = default;

std::uint16_t Server::port() const {
  return 0;
}

std::string Server::url() const {
  return {};
}

void Server::serve(ServedModel, std::shared_ptr<Scheduler>) {}

void Server::run_until_signalled() {}

ServedModel serve_model(std::shared_ptr<Engine>, const std::filesystem::path&, std::string) {
  return {};
}

void ask_server(const std::string&, const std::string&, const std::string&, const std::string&,
                const std::function<bool(const std::string&)>&) {
  throw Error(ErrorKind::unsupported,
              "this program was built without Boost, which requests to a server need");
}

std::string get_from_server(const std::string&, const std::string&, const std::string&) {
  throw Error(ErrorKind::unsupported,
              "this program was built without Boost, which requests to a server need");
}

}  // namespace sluice::server
