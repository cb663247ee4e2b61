// Answers a parsed request.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>

#include "server/http/message.h"
#include "server/http/writer.h"
#include "server/service.h"

namespace sluice::server::http {

// Answers, including errors; throws only if the client is gone. Slow preparations run on `pool`. Cancelling
// the coroutine cancels the scheduler's requests.
boost::asio::awaitable<void> answer(Service& service, boost::asio::thread_pool& pool, const Route& route,
                                    const Request& request, ResponseWriter& writer);

}  // namespace sluice::server::http
