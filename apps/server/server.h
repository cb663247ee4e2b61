// One process for every client: listens, and serves the model once it is there.
#pragma once

#include <memory>
#include <string>

#include "server/options.h"
#include "server/served_model.h"
#include "sluice/scheduler.h"

namespace sluice::server {

class Server {
 public:
  // Binds and answers from now on: 503 until there is a model. Throws Error where an option makes no sense
  // or the address is taken.
  explicit Server(const ServerOptions& options);
  ~Server();

  std::uint16_t port() const;
  std::string url() const;  // http://127.0.0.1:8080

  // From now on SIGINT, SIGTERM and SIGHUP are the server's.
  void serve(ServedModel model, std::shared_ptr<Scheduler> scheduler);
  // Until one of these signals: answers in progress may then finish within the drain time; a second signal
  // ends everything at once.
  void run_until_signalled();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::server
