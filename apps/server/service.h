// What the server knows beyond its sockets: the model, the scheduler, counters and the routes to them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "server/api/work.h"
#include "server/http/message.h"
#include "server/local/cache_reports.h"
#include "server/local/metrics.h"
#include "server/options.h"
#include "server/served_model.h"
#include "sluice/scheduler.h"

namespace sluice::server {

// Once it is loaded.
struct Loaded {
  ServedModel model;
  std::shared_ptr<Scheduler> scheduler;
};

// In whose words a route's errors are.
enum class Dialect { openai, anthropic };

struct Route {
  std::string_view method;
  std::string_view path;  // without /v1; a last "*" stands for the rest
  Dialect dialect = Dialect::openai;
  bool open = false;      // needs no key
  bool unloaded = false;  // answers before the model is loaded, too
  // One of the first two. Each may take a while and is called on a thread of its own.
  std::function<http::Response(const http::Request&)> plain = {};
  std::function<api::Work(const http::Request&, const Json& body)> generate = {};
  // Beside `plain`: events to send in its place, if any.
  std::function<std::optional<api::Following>(const http::Request&)> follow = {};
};

class Service {
 public:
  explicit Service(const ServerOptions& options);
  ~Service();

  const ServerOptions& options() const { return options_; }
  // Nothing until the model is there.
  std::shared_ptr<const Loaded> loaded() const { return std::atomic_load(&loaded_); }
  // The same; throws 503 until then.
  const Loaded& ready() const;
  void set_loaded(Loaded loaded);

  bool draining() const { return draining_; }
  void begin_draining() { draining_ = true; }
  // Ends what runs without a client.
  void cancel_background();

  // The route of that method and path, if there is one.
  const Route* find(std::string_view method, std::string_view path) const;
  // The methods that a path has routes for, as a header names them; empty: there is nothing at it.
  std::string methods(std::string_view path) const;
  local::Metrics& metrics() { return metrics_; }
  local::CacheReports& cache_reports() { return cache_reports_; }

 private:
  struct State;  // of routes that keep something

  void add_routes();
  void add_local_routes();
  void add_cache_routes();
  void add_openai_routes();
  void add_response_routes();
  void add_anthropic_routes();
  void add_conversation_routes();
  void add(Route route);

  ServerOptions options_;
  local::Metrics metrics_;
  local::CacheReports cache_reports_;
  std::shared_ptr<const Loaded> loaded_;
  std::atomic<bool> draining_ = false;
  std::unique_ptr<State> state_;
  std::vector<Route> routes_;
};

http::Response json_response(const Json& json, int status = 200);
http::Response error_response(const ApiError& error, Dialect dialect, const std::string& request_id);

}  // namespace sluice::server
