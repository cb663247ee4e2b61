// Writes to a client. Every call throws boost::system::system_error once the client is gone.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "server/http/message.h"

namespace sluice::server::http {

class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;

  virtual boost::asio::awaitable<void> send(const Response& response) = 0;
  // Server-sent events: the head, then pieces, then the end.
  virtual boost::asio::awaitable<void> begin_events() = 0;
  virtual boost::asio::awaitable<void> write(const std::string& events) = 0;
  virtual boost::asio::awaitable<void> end_events() = 0;
};

}  // namespace sluice::server::http
