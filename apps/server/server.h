// Listens, and serves the model to all clients once it is loaded.
#pragma once

#include <memory>
#include <string>

#include "server/options.h"
#include "server/served_model.h"
#include "sluice/scheduler.h"

namespace sluice::server {

class Server {
 public:
  // Binds, and answers from now on: with 503 until a model is loaded. Throws Error if an option is invalid or
  // the address is in use.
  explicit Server(const ServerOptions& options);
  ~Server();

  std::uint16_t port() const;
  std::string url() const;  // http://127.0.0.1:8080

  // From now on the server handles SIGINT, SIGTERM and SIGHUP.
  void serve(ServedModel model, std::shared_ptr<Scheduler> scheduler);
  // Runs until one of these signals: answers in progress may then finish within the drain time; a second
  // signal ends everything at once.
  void run_until_signalled();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::server
