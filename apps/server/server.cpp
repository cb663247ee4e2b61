#include "server/server.h"

#include <fmt/core.h>
#include <pthread.h>
#include <sys/resource.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <thread>

#include "server/http/listener.h"
#include "server/http/tls.h"
#include "server/service.h"
#include "sluice/error.h"

namespace sluice::server {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr std::size_t kPreparingThreads = 2;  // for JSON, templates and tokenizers
constexpr std::chrono::milliseconds kDrainStep{20};

// Every connection is an open file, and the usual limit is a thousand.
void allow_many_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

const ServerOptions& checked(const ServerOptions& options) {
  for (const std::string& key : options.api_keys)
    if (key.empty()) throw Error(ErrorKind::input, "an API key must not be empty");
  return options;
}

}  // namespace

struct Server::Impl {
  explicit Impl(const ServerOptions& options)
      : service(checked(options)),
        acceptor(http::bind_listener(io, options.host, options.port)),
        endpoint(acceptor.local_endpoint()),
        connections{service, pool, http::Access(access_settings(options)),
                    http::AccessLog(options.access_log)},
        signals(io),
        drain_timer(io) {
    check_exposure(options);
    if (!options.tls_certificate.empty() || !options.tls_key.empty()) {
      tls = http::make_tls(options.tls_certificate, options.tls_key);
      connections.tls = tls.get();
    }
    allow_many_files();
    asio::co_spawn(io, http::accept_connections(acceptor, connections), asio::detached);
    thread = std::thread([this] {
      pthread_setname_np(pthread_self(), "sluice-http");  // separates it from computation in top
      io.run();
    });
  }

  ~Impl() {
    // Requests in progress are cancelled as their connections end; coroutines are destroyed before what they
    // use.
    asio::post(io, [this] { stop(); });
    thread.join();
    pool.join();
  }

  http::Access::Settings access_settings(const ServerOptions& options) const {
    return {options.api_keys, options.cors_origins, options.api_keys.empty() && is_loopback()};
  }

  bool is_loopback() const { return endpoint.address().is_loopback(); }

  void check_exposure(const ServerOptions& options) const {
    if (is_loopback() || !options.api_keys.empty() || options.no_auth) return;
    throw Error(ErrorKind::input,
                fmt::format("{} can be reached by other machines: give an --api-key, or allow everyone with "
                            "--no-auth",
                            options.host));
  }

  void wait_for_signals() {
    signals.async_wait([this](const boost::system::error_code& error, int) {
      if (!error) begin_drain();
    });
  }

  void begin_drain() {
    service.begin_draining();
    boost::system::error_code ignored;
    acceptor.close(ignored);
    drain_end = std::chrono::steady_clock::now() + service.options().drain_time;
    signals.async_wait([this](const boost::system::error_code& error, int) {
      if (!error) stop();
    });
    drain();
  }

  // Checks repeatedly until nothing runs or the time is over.
  void drain() {
    const std::set<http::OpenConnection*> open = connections.open;
    for (http::OpenConnection* connection : open)
      if (connection->idle()) connection->close();
    if (connections.open.empty() || std::chrono::steady_clock::now() >= drain_end) return stop();
    drain_timer.expires_after(kDrainStep);
    drain_timer.async_wait([this](const boost::system::error_code& error) {
      if (!error) drain();
    });
  }

  // Closes everything; the thread ends once all connections have ended.
  void stop() {
    service.begin_draining();
    service.cancel_background();
    boost::system::error_code ignored;
    acceptor.close(ignored);
    signals.cancel(ignored);
    drain_timer.cancel();
    for (http::OpenConnection* connection : connections.open) connection->close();
  }

  asio::io_context io{1};
  asio::thread_pool pool{kPreparingThreads};
  Service service;
  tcp::acceptor acceptor;
  const tcp::endpoint endpoint;  // also available after the acceptor is closed
  std::unique_ptr<asio::ssl::context> tls;
  http::Connections connections;
  asio::signal_set signals;
  asio::steady_timer drain_timer;
  std::chrono::steady_clock::time_point drain_end;
  std::thread thread;
};

Server::Server(const ServerOptions& options) : impl_(std::make_unique<Impl>(options)) {}

Server::~Server() = default;

std::uint16_t Server::port() const {
  return impl_->endpoint.port();
}

std::string Server::url() const {
  const tcp::endpoint& endpoint = impl_->endpoint;
  const std::string host = endpoint.address().to_string();
  return fmt::format("{}://{}:{}", impl_->tls ? "https" : "http",
                     endpoint.address().is_v6() ? "[" + host + "]" : host, endpoint.port());
}

void Server::serve(ServedModel model, std::shared_ptr<Scheduler> scheduler) {
  impl_->service.set_loaded({std::move(model), std::move(scheduler)});
  // Once the server is announced, it may be ended at once, so signals are caught before.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) impl_->signals.add(signal);
  asio::post(impl_->io, [this] { impl_->wait_for_signals(); });
}

void Server::run_until_signalled() {
  impl_->thread.join();
  impl_->thread = std::thread([] {});
}

}  // namespace sluice::server
