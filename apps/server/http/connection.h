// One client's connection: each request is answered before the next is read.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <set>

#include "server/http/access.h"
#include "server/http/access_log.h"
#include "server/service.h"

namespace sluice::server::http {

class OpenConnection {
 public:
  virtual ~OpenConnection() = default;
  virtual bool idle() const = 0;  // between two requests
  virtual void close() = 0;
};

// Shared by all connections. Used only on the I/O thread.
struct Connections {
  Service& service;
  boost::asio::thread_pool& pool;
  Access access;
  AccessLog log;
  boost::asio::ssl::context* tls = nullptr;  // null: plain HTTP
  std::set<OpenConnection*> open = {};
};

// Serves the connection until it ends.
void serve_connection(boost::asio::ip::tcp::socket socket, Connections& shared);

}  // namespace sluice::server::http
