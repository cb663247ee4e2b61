#include "server/http/listener.h"

#include <fmt/core.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "sluice/error.h"

namespace sluice::server::http {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::milliseconds kPause{50};  // when the process has no more file descriptors

void turn_away(tcp::socket& socket, bool plain) {
  constexpr std::string_view kFull =
      "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
  error_code ignored;
  socket.non_blocking(true, ignored);
  if (plain) socket.send(asio::buffer(kFull), 0, ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
}

}  // namespace

tcp::acceptor bind_listener(asio::io_context& io, const std::string& host, std::uint16_t port) {
  const auto fail = [&](const error_code& error) {
    throw Error(ErrorKind::input,
                fmt::format("cannot listen on {} port {}: {}", host, port, error.message()));
  };
  error_code error;
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, error);
  if (error) fail(error);
  tcp::acceptor acceptor(io);
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(4096, error);
  if (error) fail(error);
  return acceptor;
}

asio::awaitable<void> accept_connections(tcp::acceptor& acceptor, Connections& shared) {
  asio::steady_timer pause(co_await asio::this_coro::executor);
  while (acceptor.is_open()) {
    auto [error, socket] = co_await acceptor.async_accept(kTuple);
    if (error == asio::error::operation_aborted) break;
    if (error) {
      pause.expires_after(kPause);
      co_await pause.async_wait(kTuple);
      continue;
    }
    if (shared.open.size() >= shared.service.options().limits.connections)
      turn_away(socket, shared.tls == nullptr);
    else
      serve_connection(std::move(socket), shared);
    shared.service.metrics().connections(shared.open.size());
  }
}

}  // namespace sluice::server::http
