// From a request that was read to an answer that was written.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>

#include "server/http/message.h"
#include "server/http/writer.h"
#include "server/service.h"

namespace sluice::server::http {

// Answers, errors included; fails only where the client is gone. What takes time to prepare runs on `pool`.
// Cancelling the coroutine cancels what was asked of the scheduler.
boost::asio::awaitable<void> answer(Service& service, boost::asio::thread_pool& pool, const Route& route,
                                    const Request& request, ResponseWriter& writer);

}  // namespace sluice::server::http
