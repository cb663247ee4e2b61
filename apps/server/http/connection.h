// One client's connection: requests are read one after the other, each is answered before the next.
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

// What all connections share. Used on the thread that reads and writes.
struct Connections {
  Service& service;
  boost::asio::thread_pool& pool;
  Access access;
  AccessLog log;
  boost::asio::ssl::context* tls = nullptr;  // nothing: plain HTTP
  std::set<OpenConnection*> open = {};
};

// Serves the connection until it ends.
void serve_connection(boost::asio::ip::tcp::socket socket, Connections& shared);

}  // namespace sluice::server::http
