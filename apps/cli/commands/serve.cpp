// sluice serve: one process for every client.
#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands/commands.h"
#include "options/cache_disk.h"
#include "options/model.h"
#include "server/server.h"
#include "sluice/error.h"
#include "sluice/scheduler.h"
#include "terminal/output.h"
#include "terminal/signals.h"

namespace sluice::cli::commands {

namespace {

struct ServeArguments {
  options::Model model;
  server::ServerOptions server;
  SchedulerOptions scheduler;
  int port = 8080;
  std::vector<std::string> aliases;
  bool strict_model = false;
  std::int64_t max_prompt = 0;
  std::int64_t queue = 1024;
  std::int64_t connections = 4096;
  std::int64_t drain_seconds = 30;
  std::int64_t header_seconds = 10;
  double interval_milliseconds = 50;
  std::string key_file;
  std::string cache_disk;
  bool json = false;
  bool end_with_input = false;
};

// One key per line; empty lines and lines that begin with # are skipped.
void read_keys(const std::string& path, std::vector<std::string>& keys) {
  std::ifstream file(path);
  const std::size_t before = keys.size();
  for (std::string line; std::getline(file, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty() && line.front() != '#') keys.push_back(line);
  }
  if (!file.eof()) throw Error(ErrorKind::input, fmt::format("cannot read the keys in '{}'", path));
  if (keys.size() == before) throw Error(ErrorKind::input, fmt::format("there is no key in '{}'", path));
}

server::ServerOptions server_options(const ServeArguments& options) {
  server::ServerOptions server = options.server;
  server.port = options.port;
  server.limits.connections = options.connections;
  server.limits.header_time = std::chrono::seconds(options.header_seconds);
  server.drain_time = std::chrono::seconds(options.drain_seconds);
  if (!options.key_file.empty()) read_keys(options.key_file, server.api_keys);
  return server;
}

std::shared_ptr<Scheduler> make_scheduler(const std::shared_ptr<Engine>& engine,
                                          const ServeArguments& options) {
  SchedulerOptions settings = options.scheduler;
  settings.queue = options.queue;
  settings.token_interval_seconds = options.interval_milliseconds / 1e3;
  options::read_cache_disk(options.cache_disk, settings);
  if (options.server.cache_per_key)
    settings.cache_keys = std::max<std::int64_t>(1, std::ssize(server_options(options).api_keys));
  return std::make_shared<Scheduler>(engine, settings);
}

void describe(const std::string& url, const server::ServedModel& model, const Scheduler& scheduler) {
  const SchedulerOptions& fits = scheduler.options();
  fmt::print(stderr, "{} on {}\n", model.name, model.engine->backend_description());
  fmt::print(
      stderr,
      "{} sequences at once, context of {} tokens each, KV cache of {} tokens in all, {} requests may wait\n",
      fits.parallel, fits.context, fits.cache_tokens, fits.queue);
  fmt::print(stderr, "besides that cache, cached prompts may take {:.0f} MB of host memory\n",
             static_cast<double>(fits.cache_memory) / 1e6);
  fmt::print(stderr, "chat page:          {}/\n", url);
  fmt::print(stderr, "OpenAI client:      OPENAI_BASE_URL={}/v1 OPENAI_API_KEY=none\n", url);
  fmt::print(stderr, "Anthropic client:   ANTHROPIC_BASE_URL={} ANTHROPIC_API_KEY=none\n", url);
}

void serve(ServeArguments& options) {
  if (options.end_with_input) terminal::end_with_input();
  options.model.follow_if_asked();
  server::Server server(server_options(options));
  const auto engine = options.model.load();
  const auto scheduler = make_scheduler(engine, options);
  const std::filesystem::path folder = options.model.folder();
  server::ServedModel model =
      server::serve_model(engine, folder, std::filesystem::canonical(folder).filename());
  if (!options.aliases.empty()) {
    model.name = options.aliases.front();
    model.aliases.assign(options.aliases.begin() + 1, options.aliases.end());
  }
  model.strict = options.strict_model;
  model.context = scheduler->options().context;
  model.prompt_limit = options.max_prompt;
  server.serve(model, scheduler);
  // As one line, so that a program that reads it knows when it is complete.
  const nlohmann::ordered_json said{{"url", server.url()}, {"model", model.name}};
  terminal::print_now(options.json ? said.dump() + "\n" : fmt::format("listening on {}\n", server.url()));
  describe(server.url(), model, *scheduler);
  server.run_until_signalled();
}

void add_access_options(Command& command, ServeArguments& options) {
  command.group("Access");
  command.list("--api-key", options.server.api_keys, "API key that clients must send (may be repeated)");
  command.option("--api-key-file", options.key_file, "A file with one key per line");
  command.flag("--no-auth", options.server.no_auth, "Let other machines connect without a key");
  command.list("--cors", options.server.cors_origins,
               "Origin whose web pages may use the server, e.g. https://example.org; localhost: all on this "
               "machine, *: all (may be repeated)");
  command.option("--tls-cert", options.server.tls_certificate, "Certificate chain for HTTPS (PEM)");
  command.option("--tls-key", options.server.tls_key, "Private key of the certificate (PEM)");
  command.option("--access-log", options.server.access_log,
                 "Append one line of JSON per request to this file; -: standard error");
}

void add_cache_options(Command& command, ServeArguments& options) {
  command.group("Prefix cache");
  command.size("--cache-vram", options.scheduler.cache_vram,
               "Size of the cache in the memory that the model computes in (on a GPU its own), instead of "
               "--cache-tokens");
  command.size("--cache-memory", options.scheduler.cache_memory,
               "Host memory for what is evicted from there; default: 1 GiB, with --memory at most half of "
               "what that leaves");
  command.option("--cache-disk", options.cache_disk, options::kCacheDiskMeaning);
  command.flag(
      "--cache-per-key", options.server.cache_per_key,
      "Share nothing between clients with different API keys, and give each key its own part of the cache");
  command.flag(
      "--reuse-decoded", options.scheduler.reuse_decoded,
      "Continue from answers as they were generated instead of processing them again (rounds differently)");
  command.option("--snapshot-spacing", options.scheduler.state_spacing,
                 "Keep a recurrent state of long prompts every this many tokens, a multiple of 64",
                 {64, 1 << 30});
}

void add_limits(Command& command, ServeArguments& options) {
  constexpr std::int64_t kMany = 1'000'000'000;
  command.group("Limits");
  command.option("--parallel", options.scheduler.parallel,
                 "Sequences that run at once; 0: the backend's default", {0, 4096});
  command.option("--ctx", options.scheduler.context,
                 "Context length of each sequence in tokens; 0: the model's", {0, kMany});
  command.option("--cache-tokens", options.scheduler.cache_tokens,
                 "Size of the KV cache in tokens, for all sequences together; 0: a full context for each",
                 {0, kMany});
  command.option("--queue", options.queue, "Requests that may wait; further ones get status 429", {0, kMany});
  command.option(
      "--itl-target", options.interval_milliseconds,
      "Target time between two tokens in milliseconds, which limits how much of a prompt runs in between",
      {0.1, 60'000});
  command.option("--max-prompt", options.max_prompt, "Maximum length of a prompt in tokens; 0: the context",
                 {0, kMany});
  command.size("--max-body", options.server.limits.body_bytes, "Maximum size of a request; default: 32 MiB");
  command.option("--max-connections", options.connections, "Maximum number of open connections",
                 {1, 1'000'000});
  command.option("--header-seconds", options.header_seconds,
                 "Seconds within which a request's headers must arrive", {1, 3600});
  command.option("--request-seconds", options.server.request_seconds,
                 "Maximum seconds per request, waiting included; 0: no limit", {0, 1e9});
  command.option("--drain-seconds", options.drain_seconds,
                 "Seconds that running answers may still take after SIGTERM", {0, 86'400});
}

}  // namespace

void add_serve(Parser& parser) {
  auto options = std::make_shared<ServeArguments>();
  Command command = parser.add("serve", "Serve a model to OpenAI and Anthropic clients, with a chat page");
  options::add_model(command, options->model.model);
  command.option("--host", options->server.host, "Address to listen on");
  command.option("--port", options->port, "Port; 0: choose a free one", {0, 65'535});
  command.list("--alias", options->aliases, "Model name that clients see (may be repeated)");
  command.flag("--strict-model", options->strict_model, "Reject requests that name another model");
  command.option("--data", options->server.data, "Folder in which to save the chat page's conversations");
  command.flag("--json", options->json, options::kJsonMeaning);
  command.flag("--end-with-input", options->end_with_input,
               "Stop as on SIGTERM when standard input is closed, as when the program that started the "
               "server is gone");
  add_access_options(command, *options);
  add_limits(command, *options);
  add_cache_options(command, *options);
  options::add_engine(command, options->model);
  command.example("sluice serve", "serve the bundled model on http://127.0.0.1:8080");
  command.example("sluice serve -m ~/qwen3.6-35b-4bit --host 0.0.0.0 --api-key-file keys.txt",
                  "serve other machines, with API keys");
  command.on_run([options] { serve(*options); });
}

}  // namespace sluice::cli::commands
