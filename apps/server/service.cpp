#include "server/service.h"

#include <algorithm>

#include "server/anthropic/error.h"
#include "server/anthropic/messages.h"
#include "server/local/conversations.h"
#include "server/local/openapi.h"
#include "server/local/state.h"
#include "server/local/tokens.h"
#include "server/openai/chat.h"
#include "server/openai/completions.h"
#include "server/openai/error.h"
#include "server/openai/models.h"
#include "server/page/page.h"
#include "server/responses/create.h"
#include "server/responses/stored.h"

namespace sluice::server {

namespace {

constexpr const char* kPlainText = "text/plain; version=0.0.4; charset=utf-8";

bool matches(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with('*')) return pattern == path;
  pattern.remove_suffix(1);
  return path.starts_with(pattern) && path.size() > pattern.size();
}

// The part of the path that the pattern's "*" matches.
std::string rest_of(const http::Request& request, std::string_view pattern) {
  return request.path.substr(pattern.size() - 1);
}

}  // namespace

struct Service::State {
  explicit State(const ServerOptions& options)
      : conversations(options.data), responses(options.stored_response_bytes) {}

  local::Conversations conversations;
  responses::Store responses;
};

Service::Service(const ServerOptions& options) : options_(options), state_(std::make_unique<State>(options)) {
  add_routes();
}

Service::~Service() = default;

const Loaded& Service::ready() const {
  const auto loaded = this->loaded();
  if (!loaded) throw unavailable("The model is still being loaded.");
  return *loaded;  // set once and kept as long as the service exists
}

void Service::set_loaded(Loaded loaded) {
  std::atomic_store(&loaded_, std::shared_ptr<const Loaded>(std::make_shared<Loaded>(std::move(loaded))));
}

void Service::cancel_background() {
  state_->responses.cancel_all();
}

const Route* Service::find(std::string_view method, std::string_view path) const {
  const auto found = std::find_if(routes_.begin(), routes_.end(), [&](const Route& route) {
    return route.method == method && matches(route.path, path);
  });
  return found == routes_.end() ? nullptr : &*found;
}

std::string Service::methods(std::string_view path) const {
  std::string allowed;
  for (const Route& route : routes_)
    if (matches(route.path, path)) allowed += std::string(route.method) + ", ";
  return allowed.empty() ? allowed : allowed + "OPTIONS";
}

void Service::add_routes() {
  add_local_routes();
  add_cache_routes();
  add_openai_routes();
  add_response_routes();
  add_anthropic_routes();
  add_conversation_routes();
}

void Service::add(Route route) {
  routes_.push_back(std::move(route));
}

void Service::add_local_routes() {
  add({.method = "GET", .path = "/", .open = true, .unloaded = true, .plain = [](const http::Request&) {
         return http::Response{
             200,
             std::string(page::document().html),
             "text/html; charset=utf-8",
             {{"Content-Security-Policy", std::string(page::document().content_security_policy)},
              {"Referrer-Policy", "no-referrer"},
              {"Cache-Control", "no-cache"}}};
       }});
  add({.method = "GET",
       .path = "/health",
       .open = true,
       .unloaded = true,
       .plain = [this](const http::Request&) {
         if (draining()) throw unavailable("The server is shutting down.");
         ready();
         return json_response({{"status", "ok"}});
       }});
  add({.method = "GET", .path = "/metrics", .unloaded = true, .plain = [this](const http::Request&) {
         const auto loaded = this->loaded();
         const Scheduler* scheduler = loaded ? loaded->scheduler.get() : nullptr;
         return http::Response{200, metrics_.text(scheduler), kPlainText};
       }});
  add({.method = "GET",
       .path = "/openapi.json",
       .open = true,
       .unloaded = true,
       .plain = [](const http::Request&) { return json_response(local::openapi()); }});
  add({.method = "POST", .path = "/tokenize", .plain = [this](const http::Request& request) {
         return json_response(local::tokenize(parse_body(request.body), ready().model));
       }});
  add({.method = "POST", .path = "/detokenize", .plain = [this](const http::Request& request) {
         return json_response(local::detokenize(parse_body(request.body), ready().model));
       }});
  add({.method = "GET", .path = "/sluice/state", .plain = [this](const http::Request& request) {
         const std::string* const only = options_.cache_per_key ? &request.client : nullptr;
         Json state = local::state_json(ready().model, *ready().scheduler, only);
         state["data"] = state_->conversations.kept();
         return json_response(state);
       }});
}

void Service::add_cache_routes() {
  constexpr const char* kPath = "/sluice/cache";
  add({.method = "GET", .path = kPath, .plain = [this](const http::Request& request) {
         constexpr std::string_view kOne = "request=";
         if (request.query.starts_with(kOne))
           return json_response(cache_reports_.find(request.client, request.query.substr(kOne.size())));
         if (request.query == "tree") {
           // Texts are those of everyone who shares the tree.
           const bool texts = options_.cache_per_key || options_.api_keys.size() <= 1;
           return json_response(
               local::remembered_json(ready().model, *ready().scheduler, request.client, texts));
         }
         Json json = options_.cache_per_key ? Json::object() : local::cache_json(*ready().scheduler);
         json["requests"] = cache_reports_.list(request.client);
         return json_response(json);
       }});
  add({.method = "DELETE", .path = kPath, .plain = [this](const http::Request&) {
         if (options_.cache_per_key)
           throw bad_request("This would clear the cache of all keys, and this server isolates its keys.");
         ready().scheduler->forget_prompts();
         return json_response(local::cache_json(*ready().scheduler));
       }});
}

void Service::add_openai_routes() {
  add({.method = "GET", .path = "/models", .plain = [this](const http::Request&) {
         return json_response(openai::list_models(ready().model));
       }});
  add({.method = "GET", .path = "/models/*", .plain = [this](const http::Request& request) {
         return json_response(openai::show_model(ready().model, rest_of(request, "/models/*")));
       }});
  add({.method = "POST",
       .path = "/chat/completions",
       .generate = [this](const http::Request&, const Json& body) {
         return openai::chat_completion(body, ready().model);
       }});
  add({.method = "POST",
       .path = "/chat/completions/input_tokens",
       .plain = [this](const http::Request& request) {
         return json_response(openai::count_input(parse_body(request.body), ready().model));
       }});
  add({.method = "POST", .path = "/completions", .generate = [this](const http::Request&, const Json& body) {
         return openai::completion(body, ready().model);
       }});
}

void Service::add_response_routes() {
  constexpr const char* kOne = "/responses/*";
  add({.method = "POST",
       .path = "/responses",
       .generate = [this](const http::Request& request, const Json& body) {
         return responses::create(body, ready().model, state_->responses, request.client);
       }});
  add({.method = "POST", .path = "/responses/input_tokens", .plain = [this](const http::Request& request) {
         return json_response(responses::count_input(parse_body(request.body), ready().model,
                                                     state_->responses, request.client));
       }});
  add({.method = "GET",
       .path = kOne,
       .plain =
           [this](const http::Request& request) {
             return json_response(responses::show(state_->responses, request.client, rest_of(request, kOne)));
           },
       .follow =
           [this](const http::Request& request) {
             return responses::follow(state_->responses, request.client, rest_of(request, kOne),
                                      request.query);
           }});
  add({.method = "DELETE", .path = kOne, .plain = [this](const http::Request& request) {
         const std::string id = rest_of(request, kOne);
         state_->responses.remove(request.client, id);
         return json_response({{"id", id}, {"object", "response"}, {"deleted", true}});
       }});
  add({.method = "POST", .path = kOne, .plain = [this](const http::Request& request) {
         return json_response(responses::cancel(state_->responses, request.client, rest_of(request, kOne)));
       }});
}

void Service::add_anthropic_routes() {
  add({.method = "POST",
       .path = "/messages",
       .dialect = Dialect::anthropic,
       .generate = [this](const http::Request&, const Json& body) {
         return anthropic::create_message(body, ready().model);
       }});
  add({.method = "POST",
       .path = "/messages/count_tokens",
       .dialect = Dialect::anthropic,
       .plain = [this](const http::Request& request) {
         return json_response(anthropic::count_tokens(parse_body(request.body), ready().model));
       }});
}

void Service::add_conversation_routes() {
  constexpr const char* kOne = "/sluice/conversations/*";
  add({.method = "GET",
       .path = "/sluice/conversations",
       .unloaded = true,
       .plain = [this](const http::Request& request) {
         return json_response(state_->conversations.list(request.client));
       }});
  add({.method = "GET", .path = kOne, .unloaded = true, .plain = [this](const http::Request& request) {
         return http::Response{200, state_->conversations.load(request.client, rest_of(request, kOne))};
       }});
  add({.method = "PUT", .path = kOne, .unloaded = true, .plain = [this](const http::Request& request) {
         const std::string id = rest_of(request, kOne);
         state_->conversations.save(request.client, id, parse_body(request.body));
         return json_response({{"id", id}});
       }});
  add({.method = "DELETE", .path = kOne, .unloaded = true, .plain = [this](const http::Request& request) {
         const std::string id = rest_of(request, kOne);
         state_->conversations.remove(request.client, id);
         return json_response({{"id", id}, {"deleted", true}});
       }});
}

http::Response json_response(const Json& json, int status) {
  return {status, dump(json)};
}

http::Response error_response(const ApiError& error, Dialect dialect, const std::string& request_id) {
  const Json body =
      dialect == Dialect::anthropic ? anthropic::error_body(error, request_id) : openai::error_body(error);
  http::Response response = json_response(body, error.status);
  if (error.retry_after > 0) response.headers.emplace_back("Retry-After", std::to_string(error.retry_after));
  if (error.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace sluice::server
