// What a protocol makes of a request: sequences to generate, and how to say what becomes of them.
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

// One protocol's words for an answer with one or several choices. Texts are server-sent events; whoever does
// not stream drops them and sends body().
class Reply {
 public:
  virtual ~Reply() = default;

  // Once all sequences run: what cancels them, for replies that others may cancel. It may be called any time.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): those who want it keep it
  virtual void started(std::function<void()>) {}
  virtual bool may_be_cancelled() const { return false; }
  // As soon as it is waiting for its turn.
  virtual std::string accepted() { return {}; }
  // Before the first token of any choice. `cached`: tokens of the prompt that were remembered.
  virtual std::string begin(std::int64_t cached) = 0;
  virtual std::string tokens(std::size_t choice, std::span<const GeneratedToken> tokens) = 0;
  virtual std::string done(std::size_t choice, const RequestResult& result) = 0;
  // After the last choice.
  virtual std::string end() = 0;
  virtual Json body() = 0;
  // Instead of what is left of a stream.
  virtual std::string failed(const ApiError& error) = 0;
};

struct Work {
  std::vector<Request> requests;  // one per choice
  bool stream = false;
  std::unique_ptr<Reply> reply;
  // Goes on whether or not the client stays; what it streams is then recorded.
  bool background = false;
  std::shared_ptr<Recording> recording = nullptr;
};

// Events of a recording that a client asks for.
struct Following {
  std::shared_ptr<Recording> recording;
  std::int64_t from = 0;
};

// One server-sent event; the name is left out where it is empty.
std::string event(const Json& data, std::string_view name = {});

}  // namespace sluice::server::api
