// Accepts connections and counts them.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "server/http/connection.h"

namespace sluice::server::http {

// Throws Error if the address is invalid or in use.
boost::asio::ip::tcp::acceptor bind_listener(boost::asio::io_context& io, const std::string& host,
                                             std::uint16_t port);
// Runs until the acceptor is closed. Beyond the limit, clients are told to try again later.
boost::asio::awaitable<void> accept_connections(boost::asio::ip::tcp::acceptor& acceptor,
                                                Connections& shared);

}  // namespace sluice::server::http
