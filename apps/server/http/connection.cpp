#include "server/http/connection.h"

#include <fmt/core.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>

#include "server/api/answer.h"
#include "server/http/answering.h"

namespace sluice::server::http {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kReadAhead = 64 << 10;  // of the next request, while one is answered
constexpr std::chrono::seconds kLinger{2};
constexpr int kSendBuffer = 256 << 10;
using Clock = std::chrono::steady_clock;

tcp::socket& socket_of(tcp::socket& stream) {
  return stream;
}
tcp::socket& socket_of(asio::ssl::stream<tcp::socket>& stream) {
  return stream.next_layer();
}

// GCC 12 miscompiles co_await inside conditions and arguments, so results are named first.
template <class Stream>
class Connection : public OpenConnection, public ResponseWriter {
 public:
  Connection(Stream stream, Connections& shared)
      : stream_(std::move(stream)),
        shared_(shared),
        limits_(shared.service.options().limits),
        deadline_(stream_.get_executor()),
        buffer_(limits_.header_bytes + kReadAhead) {
    error_code ignored;
    address_ = socket_of(stream_).remote_endpoint(ignored).address().to_string();
    shared_.open.insert(this);
  }
  ~Connection() override { shared_.open.erase(this); }

  bool idle() const override { return idle_; }
  void close() override {
    error_code ignored;
    socket_of(stream_).close(ignored);
  }

  asio::awaitable<void> run() {
    bool again = co_await handshake();
    while (again) again = co_await serve_one();
    close();
  }

  asio::awaitable<void> send(const Response& response) override {
    std::string text = head(response.status, response.type);
    for (const auto& [name, value] : response.headers) text += name + ": " + value + "\r\n";
    if (response.status != 204) text += fmt::format("Content-Length: {}\r\n", response.body.size());
    text += "\r\n";
    if (method_ != "HEAD") text += response.body;
    co_await put(text);
  }

  asio::awaitable<void> begin_events() override {
    std::string text = head(200, "text/event-stream; charset=utf-8");
    text += "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n";
    if (chunked_) text += "Transfer-Encoding: chunked\r\n";
    co_await put(text + "\r\n");
  }

  asio::awaitable<void> write(const std::string& events) override {
    if (chunked_)
      co_await put(fmt::format("{:x}\r\n{}\r\n", events.size(), events));
    else
      co_await put(events);
  }

  asio::awaitable<void> end_events() override {
    if (chunked_) co_await put("0\r\n\r\n");
  }

 private:
  using Parser = beast::http::request_parser<beast::http::string_body>;

  // Closes the connection when the time is over, so that pending operations fail.
  void expect_within(std::chrono::seconds time) {
    deadline_.expires_after(time);
    deadline_.async_wait([this, alive = std::weak_ptr<int>(alive_)](error_code error) {
      if (!error && !alive.expired()) close();
    });
  }
  void expect_nothing() { deadline_.cancel(); }

  asio::awaitable<bool> handshake() {
    if constexpr (!std::is_same_v<Stream, tcp::socket>) {
      expect_within(limits_.header_time);
      auto [error] = co_await stream_.async_handshake(asio::ssl::stream_base::server, kTuple);
      expect_nothing();
      co_return !error;
    }
    co_return true;
  }

  // Writes; the client must read it within a time limit.
  asio::awaitable<void> put(std::string text) {
    status_sent_ = true;
    expect_within(limits_.send_time);
    auto [error, bytes] = co_await asio::async_write(stream_, asio::buffer(text), kTuple);
    expect_nothing();
    written_ += bytes;
    if (error) throw boost::system::system_error(error);
  }

  std::string head(int status, const std::string& type) {
    status_ = status;
    if (shared_.service.draining()) keep_alive_ = false;
    std::string text = fmt::format("HTTP/1.1 {} {}\r\nServer: sluice\r\n", status, reason_phrase(status));
    if (status != 204) text += fmt::format("Content-Type: {}\r\n", type);
    text += fmt::format("X-Request-Id: {0}\r\nRequest-Id: {0}\r\n", id_);
    text += keep_alive_ ? "Connection: keep-alive\r\n" : "Connection: close\r\n";
    text += "X-Content-Type-Options: nosniff\r\n";
    if (!cors_.empty())
      text += fmt::format(
          "Access-Control-Allow-Origin: {}\r\nVary: Origin\r\n"
          "Access-Control-Expose-Headers: X-Request-Id, Request-Id, Retry-After\r\n",
          cors_);
    return text;
  }

  // Serves one request; returns whether another may follow.
  asio::awaitable<bool> serve_one() {
    Parser parser;
    parser.header_limit(limits_.header_bytes);
    parser.body_limit(limits_.body_bytes);
    begin_request();
    const bool came = co_await wait_for_request();
    if (!came) co_return false;
    const auto start = Clock::now();
    expect_within(limits_.header_time);
    auto [error, bytes] = co_await beast::http::async_read_header(stream_, buffer_, parser, kTuple);
    expect_nothing();
    bool again = false;
    if (error)
      co_await refuse_unread(error);
    else
      again = co_await serve_header(parser);
    log(start);
    co_return again;
  }

  void begin_request() {
    id_ = api::new_id("req_");
    method_ = path_ = client_ = cors_ = "";
    keep_alive_ = false;
    status_ = 0;
    written_ = 0;
    status_sent_ = false;
  }

  asio::awaitable<bool> wait_for_request() {
    if (buffer_.size() > 0) co_return true;
    if (shared_.service.draining()) co_return false;
    idle_ = true;
    expect_within(limits_.idle_time);
    auto [error, bytes] = co_await stream_.async_read_some(buffer_.prepare(4096), kTuple);
    expect_nothing();
    idle_ = false;
    buffer_.commit(bytes);
    co_return !error;
  }

  // Answers data that could not be parsed as a request.
  asio::awaitable<void> refuse_unread(error_code error) {
    if (error == beast::http::error::header_limit || error == beast::http::error::buffer_overflow)
      co_await refuse({431, "invalid_request_error", "The headers are too large."});
    else if (error == beast::http::error::body_limit)
      co_await refuse({413, "invalid_request_error", too_large()});
    else if (error.category() == beast::http::make_error_code(beast::http::error::bad_method).category() &&
             error != beast::http::error::end_of_stream && error != beast::http::error::partial_message)
      co_await refuse(bad_request("This is not a valid HTTP request."));
  }

  std::string too_large() const {
    return fmt::format("The body is larger than the {} bytes this server reads.", limits_.body_bytes);
  }

  // Answers and closes: the rest of the request is not needed, but a client that is still writing must be
  // able to read the answer.
  asio::awaitable<void> refuse(ApiError error, Dialect dialect = Dialect::openai) {
    keep_alive_ = false;
    const Response response = error_response(error, dialect, id_);
    try {
      co_await send(response);
    } catch (const boost::system::system_error&) {
      co_return;
    }
    error_code ignored;
    if constexpr (std::is_same_v<Stream, tcp::socket>) stream_.shutdown(tcp::socket::shutdown_send, ignored);
    expect_within(kLinger);
    for (error_code over; !over;) {
      buffer_.clear();
      auto [read_error, bytes] = co_await stream_.async_read_some(buffer_.prepare(kReadAhead), kTuple);
      over = read_error;
    }
    expect_nothing();
  }

  asio::awaitable<bool> serve_header(Parser& parser) {
    const auto& message = parser.get();
    chunked_ = message.version() >= 11;
    const Credentials credentials = credentials_of(message);
    Request request;
    const std::string problem = read_target(message, request);
    cors_ = shared_.access.cors_origin(credentials);
    const Route* route = shared_.service.find(method_ == "HEAD" ? "GET" : method_, request.path);
    const Dialect dialect = route != nullptr ? route->dialect : Dialect::openai;
    std::optional<ApiError> error;
    if (!problem.empty())
      error = bad_request(problem);
    else
      error = check_access(credentials, route);
    if (error) {
      co_await refuse(*error, dialect);
      co_return false;
    }
    const bool whole = co_await read_body(parser, message);
    if (!whole) co_return false;
    keep_alive_ = parser.get().keep_alive();
    request.body = std::move(parser.get().body());
    request.client = client_;
    request.id = id_;
    const bool again = co_await answer_request(request, route);
    co_return again;
  }

  template <class Message>
  static Credentials credentials_of(const Message& message) {
    const auto header = [&](std::string_view name) -> std::string_view {
      const auto value = message[name];
      return {value.data(), value.size()};
    };
    return {header("Authorization"), header("X-Api-Key"), header("Origin"), header("Host")};
  }

  template <class Message>
  std::string read_target(const Message& message, Request& request) {
    method_ = std::string(message.method_string());
    const std::string_view target(message.target().data(), message.target().size());
    const std::size_t query = target.find('?');
    const bool decoded = target.starts_with('/') && decode_path(target.substr(0, query), request.path);
    if (query != std::string_view::npos) request.query = target.substr(query + 1);
    path_ = request.path;
    if (request.path.starts_with("/v1/")) request.path.erase(0, 3);
    request.method = method_;
    if (!decoded) return "The path of the request makes no sense.";
    if (!message["Content-Encoding"].empty() && message["Content-Encoding"] != "identity")
      return "Compressed bodies are not supported.";
    return {};
  }

  std::optional<ApiError> check_access(const Credentials& credentials, const Route* route) {
    // A preflight request does nothing, and its answer tells the browser what is allowed.
    if (method_ != "OPTIONS" && !shared_.access.allows_page(credentials))
      return ApiError(403, "permission_error",
                      "Pages of this origin may not use this server; --cors allows them.");
    client_ = address_;
    if (!shared_.access.needs_key() || method_ == "OPTIONS" || (route != nullptr && route->open))
      return std::nullopt;
    const auto client = shared_.access.client(credentials);
    if (client) {
      client_ = *client;
      return std::nullopt;
    }
    ApiError error(401, "authentication_error", "The API key is missing or wrong.");
    error.code = "invalid_api_key";
    return error;
  }

  template <class Message>
  asio::awaitable<bool> read_body(Parser& parser, const Message& message) {
    if (parser.is_done()) co_return true;
    expect_within(limits_.body_time);
    if (message["Expect"] == "100-continue") {
      const std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
      auto [error, bytes] = co_await asio::async_write(stream_, asio::buffer(go_on), kTuple);
      if (error) co_return false;
    }
    auto [error, bytes] = co_await beast::http::async_read(stream_, buffer_, parser, kTuple);
    expect_nothing();
    if (error == beast::http::error::body_limit)
      co_await refuse({413, "invalid_request_error", too_large()});
    else if (error)
      co_await refuse_unread(error);
    co_return !error;
  }

  asio::awaitable<bool> answer_request(const Request& request, const Route* route) {
    using namespace asio::experimental::awaitable_operators;
    if (route == nullptr) {
      const Response response = unrouted(request.path);
      co_await send(response);
      co_return keep_alive_;
    }
    const auto outcome = co_await (answer_or_fail(request, *route) || watch());
    co_return outcome.index() == 0 && std::get<0>(outcome) && keep_alive_;
  }

  // Returns whether the client stayed until the end.
  asio::awaitable<bool> answer_or_fail(const Request& request, const Route& route) {
    try {
      co_await answer(shared_.service, shared_.pool, route, request, *this);
      co_return true;
    } catch (const std::exception&) {
      co_return false;
    }
  }

  Response unrouted(const std::string& path) {
    if (method_ == "OPTIONS") {
      Response response;  // 200, because some clients accept no other status
      if (!cors_.empty())
        response.headers = {{"Access-Control-Allow-Methods", "GET, POST, PUT, DELETE, OPTIONS"},
                            {"Access-Control-Allow-Headers", "*, Authorization"},
                            {"Access-Control-Max-Age", "600"}};
      return response;
    }
    const std::string allowed = shared_.service.methods(path);
    const Dialect dialect = path.starts_with("/messages") ? Dialect::anthropic : Dialect::openai;
    if (allowed.empty())
      return error_response({404, "invalid_request_error", "There is nothing at this path."}, dialect, id_);
    Response response =
        error_response({405, "invalid_request_error", "This method is not allowed here."}, dialect, id_);
    response.headers.emplace_back("Allow", allowed);
    return response;
  }

  // Ends when the client is gone. Data it sends meanwhile belongs to its next request.
  asio::awaitable<void> watch() {
    while (buffer_.size() < kReadAhead) {
      auto [error, bytes] = co_await stream_.async_read_some(buffer_.prepare(4096), kTuple);
      buffer_.commit(bytes);
      if (error) co_return;
    }
    // It sends more than a client should, so only writing will show whether it is gone.
    asio::steady_timer never(stream_.get_executor(), Clock::time_point::max());
    co_await never.async_wait(kTuple);
  }

  void log(Clock::time_point start) {
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (method_.empty() && !status_sent_) return;
    shared_.service.metrics().count_request(status_);
    shared_.log.write({id_, address_, client_, method_, path_, status_, written_, seconds});
  }

  Stream stream_;
  Connections& shared_;
  const Limits& limits_;
  asio::steady_timer deadline_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
  beast::flat_buffer buffer_;
  std::string address_;
  bool idle_ = false;
  // Properties of the current request.
  std::string id_, method_, path_, client_, cors_;
  bool keep_alive_ = false, chunked_ = false, status_sent_ = false;
  int status_ = 0;
  std::uint64_t written_ = 0;
};

template <class Stream>
asio::awaitable<void> serve(Stream stream, Connections& shared) {
  Connection<Stream> connection(std::move(stream), shared);
  try {
    co_await connection.run();
  } catch (const std::exception&) {
    // The client has disconnected.
  }
}

}  // namespace

void serve_connection(tcp::socket socket, Connections& shared) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  // Limits the megabytes that the kernel would buffer for a client that does not read.
  socket.set_option(tcp::socket::send_buffer_size(kSendBuffer), ignored);
  const asio::any_io_executor executor = socket.get_executor();
  if (shared.tls == nullptr)
    asio::co_spawn(executor, serve(std::move(socket), shared), asio::detached);
  else
    asio::co_spawn(executor, serve(asio::ssl::stream<tcp::socket>(std::move(socket), *shared.tls), shared),
                   asio::detached);
}

}  // namespace sluice::server::http
