// The server without its sockets: the model, the scheduler, counters and routes.
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

// What is available once the model is loaded.
struct Loaded {
  ServedModel model;
  std::shared_ptr<Scheduler> scheduler;
};

// The protocol of a route's error messages.
enum class Dialect { openai, anthropic };

struct Route {
  std::string_view method;
  std::string_view path;  // without /v1; a final "*" matches the rest
  Dialect dialect = Dialect::openai;
  bool open = false;      // needs no key
  bool unloaded = false;  // answers before the model is loaded, too
  // One of these two is set. Each may take a while and is called on a thread of its own.
  std::function<http::Response(const http::Request&)> plain = {};
  std::function<api::Work(const http::Request&, const Json& body)> generate = {};
  // In addition to `plain`: events to send in its place, if any.
  std::function<std::optional<api::Following>(const http::Request&)> follow = {};
};

class Service {
 public:
  explicit Service(const ServerOptions& options);
  ~Service();

  const ServerOptions& options() const { return options_; }
  // Null until the model is loaded.
  std::shared_ptr<const Loaded> loaded() const { return std::atomic_load(&loaded_); }
  // The same; throws 503 until then.
  const Loaded& ready() const;
  void set_loaded(Loaded loaded);

  bool draining() const { return draining_; }
  void begin_draining() { draining_ = true; }
  // Cancels what runs without a client.
  void cancel_background();

  // The route for that method and path, or null.
  const Route* find(std::string_view method, std::string_view path) const;
  // The methods that a path has routes for, in the format of a header; empty: none.
  std::string methods(std::string_view path) const;
  local::Metrics& metrics() { return metrics_; }
  local::CacheReports& cache_reports() { return cache_reports_; }

 private:
  struct State;  // of routes that keep state

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
