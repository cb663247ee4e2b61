#include "commands/remote.h"

#include <fmt/core.h>

#include "chat/line_reader.h"
#include "json.h"
#include "server/client.h"
#include "sluice/error.h"
#include "terminal/output.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace sluice::cli::commands {

namespace {

// The text of a chunk of either protocol.
std::string text_of(const std::string& data) {
  const Json chunk = Json::parse(data, nullptr, false);
  if (!chunk.is_object() || !chunk.contains("choices") || chunk["choices"].empty()) return {};
  const Json& choice = chunk["choices"][0];
  const Json text =
      choice.contains("delta") ? choice["delta"].value("content", Json()) : choice.value("text", Json());
  return text.is_string() ? text.get<std::string>() : std::string();
}

std::string show(const RemoteOptions& remote, const char* path, Json body) {
  body["stream"] = true;
  std::string answer;
  server::ask_server(remote.url, remote.key, path, dump(body), [&](const std::string& data) {
    const std::string text = text_of(data);
    answer += text;
    terminal::print_now(terminal::for_stdout(text));
    return !terminal::interrupted();
  });
  return answer;
}

}  // namespace

void RemoteOptions::add(Command& command) {
  command.group("Use a running server");
  command.option("--server", url,
                 "Send the request to this server, e.g. http://127.0.0.1:8080, instead of loading a model");
  command.option("--server-key", key, "API key for that server");
}

std::string ask_remote(const RemoteOptions& remote, const options::Generation& generation,
                       const Json& messages) {
  Json body = generation.as_json();
  body["messages"] = messages;
  return show(remote, "/v1/chat/completions", std::move(body));
}

std::string continue_remote(const RemoteOptions& remote, const options::Generation& generation,
                            const std::string& text) {
  Json body = generation.as_json();
  body["prompt"] = text;
  return show(remote, "/v1/completions", std::move(body));
}

void chat_remote(const RemoteOptions& remote, const options::Generation& generation,
                 const std::string& system) {
  Json messages = Json::array();
  if (!system.empty()) messages.push_back({{"role", "system"}, {"content", system}});
  const auto reader = chat::make_line_reader({}, "");
  fmt::print(stderr, "Talking to {}; Ctrl-C stops an answer, Ctrl-D ends.\n", remote.url);
  terminal::note_every_interrupt();
  std::string message;
  for (;;) {
    const chat::LineReader::Outcome outcome = reader->read("> ", message);
    if (outcome == chat::LineReader::Outcome::end || outcome == chat::LineReader::Outcome::interrupted_empty)
      return;
    terminal::forget_interrupt();
    if (outcome != chat::LineReader::Outcome::line || message.empty()) continue;
    messages.push_back({{"role", "user"}, {"content", message}});
    try {
      const std::string answer = ask_remote(remote, generation, messages);
      messages.push_back({{"role", "assistant"}, {"content", answer}});
      terminal::print_now("\n");
    } catch (const Error& error) {
      messages.erase(messages.size() - 1);
      fmt::print(stderr, "sluice: {}\n", terminal::printable(error.what()));
    }
  }
}

}  // namespace sluice::cli::commands
