#include "server/http/answering.h"

#include <fmt/core.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <optional>

#include "server/http/inbox.h"

namespace sluice::server::http {

namespace asio = boost::asio;

namespace {

constexpr std::size_t kMostWaitingBytes = 8 << 20;  // tokens that a slow client has not read yet
constexpr std::chrono::hours kLong{24};

// The sequences of a request, which are cancelled on destruction unless they are done.
class Running {
 public:
  Running() = default;
  Running(Running&&) = default;
  Running& operator=(Running&&) = default;
  ~Running() {
    for (const RequestHandle& handle : handles_) handle.cancel();
  }
  void add(RequestHandle handle) { handles_.push_back(std::move(handle)); }
  const std::vector<RequestHandle>& handles() const { return handles_; }

 private:
  std::vector<RequestHandle> handles_;
};

struct Started {
  api::Work work;
  std::shared_ptr<Inbox> inbox;
  std::shared_ptr<const Loaded> loaded;  // outlives what runs on it
  Running running;
  std::string id, client;            // of the request
  std::string salt;                  // of the first choice
  std::vector<std::int32_t> prompt;  // of the first choice
};

Started start(Service& service, const Route& route, const Request& request,
              const asio::any_io_executor& executor) {
  Started started;
  started.loaded = service.loaded();
  // Freed once its sequences run, because freeing a long prompt of token ids takes a while.
  const Json body = parse_body(request.body);
  started.work = route.generate(request, body);
  const std::size_t most = started.work.stream ? kMostWaitingBytes : std::numeric_limits<std::size_t>::max();
  started.inbox = std::make_shared<Inbox>(executor, started.work.requests.size(), most);
  started.id = request.id;
  started.client = request.client;
  if (!started.work.requests.empty()) {
    started.salt = started.work.requests[0].cache_salt;
    started.prompt = started.work.requests[0].prompt;
  }
  for (std::size_t i = 0; i < started.work.requests.size(); ++i) {
    sluice::Request& one = started.work.requests[i];
    one.key = request.client;
    one.timeout_seconds = service.options().request_seconds;
    started.running.add(started.loaded->scheduler->submit(std::move(one), started.inbox->callbacks(i)));
  }
  started.work.reply->started([handles = started.running.handles()] {
    for (const RequestHandle& handle : handles) handle.cancel();
  });
  return started;
}

// The error of a sequence that had been accepted: a full queue is then not reported as one to retry later.
ApiError failure_of(const std::exception_ptr& error) {
  ApiError failure = api_error(error);
  return failure.status == 429 ? unavailable(failure.message) : failure;
}

// Passes news on to the reply and returns what to write. Throws the error of a failed sequence.
class ReplyFeed {
 public:
  ReplyFeed(Service& service, Started& started)
      : service_(service), started_(started), left_(started.work.requests.size()) {}

  std::string tell(std::vector<News> news) {
    std::string text;
    api::Reply& reply = *started_.work.reply;
    for (std::size_t i = 0; i < news.size(); ++i) {
      if (!begun_ && (!news[i].tokens.empty() || news[i].result)) {
        begun_ = true;
        const auto progress = started_.inbox->progress();
        text += reply.begin(progress ? progress->cached : 0);
      }
      service_.metrics().observe(news[i].intervals, news[i].first);
      if (!news[i].tokens.empty()) text += reply.tokens(i, news[i].tokens);
      if (news[i].result) text += finish(i, *news[i].result);
    }
    if (left_ == 0) text += reply.end();
    return text;
  }
  bool begun() const { return begun_; }
  bool over() const { return left_ == 0; }

 private:
  std::string finish(std::size_t choice, const RequestResult& result) {
    if (result.error) throw failure_of(result.error);
    if (result.generated.reason == FinishReason::cancelled && !started_.work.reply->may_be_cancelled())
      throw unavailable("The server stopped before the answer was complete.");
    --left_;
    if (choice == 0)
      service_.cache_reports().add(
          started_.id, started_.client, started_.salt, started_.prompt,
          local::cache_report(started_.loaded->model, started_.prompt, result.prompt));
    return started_.work.reply->done(choice, result);
  }

  Service& service_;
  Started& started_;
  std::size_t left_;
  bool begun_ = false;
};

asio::awaitable<void> send_whole(Service& service, Started& started, ResponseWriter& writer) {
  // All tokens are passed on at once, because no one reads them earlier.
  std::vector<News> all(started.work.requests.size());
  std::size_t left = all.size();
  while (left > 0) {
    co_await started.inbox->wait(kLong);
    std::vector<News> news = started.inbox->take();
    for (std::size_t i = 0; i < news.size(); ++i) {
      std::move(news[i].tokens.begin(), news[i].tokens.end(), std::back_inserter(all[i].tokens));
      all[i].intervals.insert(all[i].intervals.end(), news[i].intervals.begin(), news[i].intervals.end());
      all[i].first = all[i].first || news[i].first;
      if (!news[i].result) continue;
      if (news[i].result->error) throw failure_of(news[i].result->error);
      all[i].result = std::move(news[i].result);
      --left;
    }
  }
  ReplyFeed telling(service, started);
  const std::string cache = local::cache_header(all.at(0).result->prompt);
  telling.tell(std::move(all));
  Response response = json_response(started.work.reply->body());
  response.headers.emplace_back("X-Sluice-Cache", cache);
  co_await writer.send(response);
}

// A comment that tells a waiting client the progress of its prompt.
std::string comment(const Inbox& inbox) {
  const auto progress = inbox.progress();
  return progress ? fmt::format(": prefill {}/{}\n\n", progress->read, progress->all) : ": waiting\n\n";
}

// Sends events as they are recorded, from a number on.
// NOLINTNEXTLINE(performance-unnecessary-value-param): used after the caller may be gone
asio::awaitable<void> follow(Service& service, const api::Following following, ResponseWriter& writer) {
  co_await writer.begin_events();
  // Recording happens on this thread, too, so nothing can come between the check and the wait.
  bool fresh = false;
  asio::steady_timer timer(co_await asio::this_coro::executor);
  const auto listener = following.recording->listen([&] {
    fresh = true;
    timer.cancel();
  });
  for (std::int64_t next = following.from;;) {
    fresh = false;
    const api::Recording::Rest rest = following.recording->from(next);
    next = std::max(next, rest.next);
    if (!rest.events.empty()) co_await writer.write(rest.events);
    if (rest.over) break;
    if (fresh) continue;  // news arrived while writing
    timer.expires_after(service.options().ping_interval);
    co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
    if (!fresh) co_await writer.write(": waiting\n\n");
  }
  co_await writer.end_events();
}

// Runs to the end, even without a client.
asio::awaitable<void> go_on(Service& service, Started started) {
  ReplyFeed telling(service, started);
  const auto record = [&](const std::string& events) {
    if (started.work.recording) started.work.recording->add(events);
  };
  record(started.work.reply->accepted());
  while (!telling.over()) {
    co_await started.inbox->wait(kLong);
    try {
      record(telling.tell(started.inbox->take()));
    } catch (...) {
      record(started.work.reply->failed(api_error(std::current_exception())));
      break;
    }
  }
  if (started.work.recording) started.work.recording->end();
}

asio::awaitable<void> generate_in_background(Service& service, Started started, ResponseWriter& writer) {
  // Background work is cancelled when the server stops, and nothing would cancel work that starts later.
  if (service.draining()) throw unavailable("The server is shutting down.");
  const api::Following following{.recording = started.work.recording};
  const Response response = json_response(started.work.reply->body());
  asio::co_spawn(co_await asio::this_coro::executor, go_on(service, std::move(started)), asio::detached);
  if (following.recording)
    co_await follow(service, following, writer);
  else
    co_await writer.send(response);
}

asio::awaitable<void> stream(Service& service, Started& started, ResponseWriter& writer) {
  co_await writer.begin_events();
  if (const std::string accepted = started.work.reply->accepted(); !accepted.empty())
    co_await writer.write(accepted);
  ReplyFeed telling(service, started);
  std::optional<ApiError> failure;
  std::string last_comment;
  while (!telling.over() && !failure) {
    const auto before = std::chrono::steady_clock::now();
    co_await started.inbox->wait(service.options().ping_interval);
    std::string text;
    try {
      if (started.inbox->overflowed()) throw overloaded("The client reads its answer too slowly.");
      text = telling.tell(started.inbox->take());
      const bool waited = std::chrono::steady_clock::now() - before >= service.options().ping_interval;
      if (text.empty() && !telling.begun()) {
        std::string now = comment(*started.inbox);
        if (waited || now != last_comment) text = last_comment = now;
      } else if (text.empty() && waited) {
        text = ": waiting\n\n";
      }
    } catch (...) {
      failure = api_error(std::current_exception());
      text = started.work.reply->failed(*failure);
    }
    if (!text.empty()) co_await writer.write(text);
  }
  co_await writer.end_events();
}

// Runs a coroutine in the pool to its end even if the client leaves: a cancellation would reach it on another
// thread, where nothing would catch it between the last step and the hand-over.
template <class F>
auto run_in(asio::thread_pool& pool, F& work) {
  return asio::co_spawn(pool, work,
                        asio::bind_cancellation_slot(asio::cancellation_slot(), asio::use_awaitable));
}

asio::awaitable<void> generate(Service& service, asio::thread_pool& pool, const Route& route,
                               const Request& request, ResponseWriter& writer) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  auto prepare = [&]() -> asio::awaitable<Started> { co_return start(service, route, request, executor); };
  Started started = co_await run_in(pool, prepare);
  if (started.work.background)
    co_await generate_in_background(service, std::move(started), writer);
  else if (started.work.stream)
    co_await stream(service, started, writer);
  else
    co_await send_whole(service, started, writer);
}

asio::awaitable<void> reply_plainly(Service& service, asio::thread_pool& pool, const Route& route,
                                    const Request& request, ResponseWriter& writer) {
  std::optional<api::Following> following;
  auto run = [&]() -> asio::awaitable<Response> {
    if (route.follow) following = route.follow(request);
    co_return following ? Response{} : route.plain(request);
  };
  const Response response = co_await run_in(pool, run);
  if (following)
    co_await follow(service, *following, writer);
  else
    co_await writer.send(response);
}

}  // namespace

asio::awaitable<void> answer(Service& service, asio::thread_pool& pool, const Route& route,
                             const Request& request, ResponseWriter& writer) {
  std::optional<ApiError> failure;
  try {
    if (service.draining() && route.generate) throw unavailable("The server is shutting down.");
    if (!route.unloaded) service.ready();
    if (route.generate)
      co_await generate(service, pool, route, request, writer);
    else
      co_await reply_plainly(service, pool, route, request, writer);
  } catch (const boost::system::system_error&) {
    throw;  // the client is gone
  } catch (...) {
    failure = api_error(std::current_exception());
  }
  if (!failure) co_return;
  const Response response = error_response(*failure, route.dialect, request.id);
  co_await writer.send(response);
}

}  // namespace sluice::server::http
