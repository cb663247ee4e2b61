// The result of parsing a request: sequences to generate, and how to report them.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "server/api/recording.h"
#include "server/api_error.h"
#include "server/json.h"
#include "sluice/scheduler.h"

namespace sluice::server::api {

// One protocol's format of an answer with one or several choices. Texts are server-sent events; without
// streaming they are dropped and body() is sent.
class Reply {
 public:
  virtual ~Reply() = default;

  // Called once all sequences run, with a function that cancels them, for replies that others may cancel. It
  // may be called at any time.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): overrides may store it
  virtual void started(std::function<void()>) {}
  virtual bool may_be_cancelled() const { return false; }
  // Called as soon as it is queued.
  virtual std::string accepted() { return {}; }
  // Called before the first token of any choice. `cached`: cached tokens of the prompt.
  virtual std::string begin(std::int64_t cached) = 0;
  virtual std::string tokens(std::size_t choice, std::span<const GeneratedToken> tokens) = 0;
  virtual std::string done(std::size_t choice, const RequestResult& result) = 0;
  // Called after the last choice.
  virtual std::string end() = 0;
  virtual Json body() = 0;
  // Called instead of the rest of a stream.
  virtual std::string failed(const ApiError& error) = 0;
};

struct Work {
  std::vector<Request> requests;  // one per choice
  bool stream = false;
  std::unique_ptr<Reply> reply;
  // Whether it continues without its client; its stream is then recorded.
  bool background = false;
  std::shared_ptr<Recording> recording = nullptr;
};

// Events of a recording that a client requests.
struct Following {
  std::shared_ptr<Recording> recording;
  std::int64_t from = 0;
};

// One server-sent event; an empty name is left out.
std::string event(const Json& data, std::string_view name = {});

}  // namespace sluice::server::api
