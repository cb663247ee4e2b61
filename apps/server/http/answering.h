// Answers a parsed request.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <string>

#include "server/http/message.h"
#include "server/service.h"

namespace sluice::server::http {

// The way back to a client. Every call throws boost::system::system_error once the client is gone.
class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;

  virtual boost::asio::awaitable<void> send(const Response& response) = 0;
  // Server-sent events: the head, then pieces, then the end.
  virtual boost::asio::awaitable<void> begin_events() = 0;
  virtual boost::asio::awaitable<void> write(const std::string& events) = 0;
  virtual boost::asio::awaitable<void> end_events() = 0;
};

// Answers, including errors; throws only if the client is gone. Slow preparations run on `pool`. Cancelling
// the coroutine cancels the scheduler's requests.
boost::asio::awaitable<void> answer(Service& service, boost::asio::thread_pool& pool, const Route& route,
                                    const Request& request, ResponseWriter& writer);

}  // namespace sluice::server::http
