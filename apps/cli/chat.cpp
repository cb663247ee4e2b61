// sluice chat: a conversation. The model keeps its state between turns; Ctrl-C stops the answer, not the
// program.
#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "generation_options.h"
#include "sluice/error.h"

namespace sluice::cli {

namespace {

volatile std::sig_atomic_t interrupted = 0;

void on_interrupt(int) {
  interrupted = 1;
}

struct Options {
  ModelOptions model;
  GenerationOptions generation;
  std::string system;
};

// Appends what the conversation adds to the timeline; starts over where a template rewrites its past.
std::vector<std::int32_t> continuation(Session& session, const Engine& engine,
                                       const nlohmann::ordered_json& messages) {
  const std::vector<std::int32_t> whole = engine.encode(engine.render_chat(messages.dump()));
  const auto& past = session.tokens();
  if (past.size() < whole.size() && std::equal(past.begin(), past.end(), whole.begin()))
    return {whole.begin() + static_cast<std::ptrdiff_t>(past.size()), whole.end()};
  session.reset();
  return whole;
}

void run(Options& options) {
  const auto engine = options.model.load();
  if (!engine->has_chat_template())
    throw Error(ErrorKind::unsupported, "this checkpoint has no chat template; use 'sluice run --raw'");
  constexpr std::int64_t kDefaultContext = 8192;
  const std::int64_t wanted = options.generation.context(*engine, kDefaultContext);
  const auto session = engine->new_session(std::min(wanted, engine->summary().max_positions));
  auto messages = nlohmann::ordered_json::array();
  if (!options.system.empty()) messages.push_back({{"role", "system"}, {"content", options.system}});
  fmt::print(stderr, "Type a message; Ctrl-C stops an answer, Ctrl-D ends.\n");
  std::signal(SIGINT, on_interrupt);
  for (std::string line; fmt::print(stderr, "\n> "), std::getline(std::cin, line);) {
    if (line.empty()) continue;
    messages.push_back({{"role", "user"}, {"content", line}});
    interrupted = 0;
    try {
      const auto prompt = continuation(*session, *engine, messages);
      const GenerateResult answer =
          generate(*session, prompt, options.generation.resolve(), [](const GeneratedToken& token) {
            fmt::print("{}", token.text);
            std::fflush(stdout);
            return interrupted == 0;
          });
      fmt::print("\n");
      messages.push_back({{"role", "assistant"}, {"content", answer.text}});
    } catch (const Error& error) {
      // A message that does not fit is taken back; the conversation goes on without it.
      messages.erase(messages.size() - 1);
      session->reset();
      fmt::print(stderr, "sluice: {}\n", error.what());
    }
  }
}

}  // namespace

void add_chat(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("chat", "Talk with a model");
  command->add_option("-m,--model", options->model.model, "Checkpoint folder or bundled model")
      ->capture_default_str();
  command->add_option("--system", options->system, "What the model is told before the conversation");
  add_engine_options(*command, options->model);
  options->generation.add(*command);
  command->callback([options] { run(*options); });
}

}  // namespace sluice::cli
