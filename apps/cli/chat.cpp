// sluice chat: a conversation. The model keeps its state between turns; Ctrl-C stops the answer, not the
// program.
#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

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
  bool stats = false;
};

// What was said, and how much of it the session has seen.
class Conversation {
 public:
  Conversation(const Engine& engine, Session& session, const std::string& system)
      : engine_(engine), session_(session) {
    if (!system.empty()) messages_.push_back({{"role", "system"}, {"content", system}});
  }

  // Answers the message. One that fails is forgotten, and the conversation can go on without it.
  GenerateResult ask(const std::string& message, const GenerateOptions& options) {
    messages_.push_back({{"role", "user"}, {"content", message}});
    try {
      const std::string rendered = engine_.render_chat(messages_.dump());
      const std::vector<std::int32_t> added = unseen(rendered);
      kept_ = session_.length();
      GenerateResult answer = generate(session_, added, options, [](const GeneratedToken& token) {
        fmt::print("{}", token.text);
        std::fflush(stdout);
        return interrupted == 0;
      });
      messages_.push_back({{"role", "assistant"}, {"content", answer.text}});
      remember(rendered, answer);
      return answer;
    } catch (const Error&) {
      messages_.erase(messages_.size() - 1);
      forget();
      throw;
    }
  }

  std::int64_t kept() const { return kept_; }  // tokens that the last message did not have to run again

 private:
  // The ids to append. Where a template rewrites its past, everything is said anew.
  std::vector<std::int32_t> unseen(const std::string& rendered) {
    if (seen_.empty() || !rendered.starts_with(seen_)) {
      forget();
      return engine_.encode(rendered);
    }
    std::vector<std::int32_t> ids = std::exchange(pending_, {});
    const std::vector<std::int32_t> rest = engine_.encode(rendered.substr(seen_.size()));
    ids.insert(ids.end(), rest.begin(), rest.end());
    return ids;
  }

  // The answer's own ids stay: encoding its text again could split it otherwise.
  void remember(const std::string& rendered, const GenerateResult& answer) {
    seen_ = engine_.decode(answer.ids) == answer.text ? rendered + answer.text : "";
    // An answer that was stopped has a last token that the model has not run.
    const auto run = static_cast<std::ptrdiff_t>(session_.length() - kept_ - answer.prompt_tokens);
    pending_.assign(answer.ids.begin() + run, answer.ids.end());
  }

  void forget() {
    session_.reset();
    seen_.clear();
    pending_.clear();
  }

  const Engine& engine_;
  Session& session_;
  nlohmann::ordered_json messages_ = nlohmann::ordered_json::array();
  std::string seen_;                   // the text that the session and then pending_ stand for
  std::vector<std::int32_t> pending_;  // said, not yet run
  std::int64_t kept_ = 0;
};

void print_stats(const GenerateResult& answer, std::int64_t kept) {
  const auto generated = static_cast<double>(answer.ids.size());
  fmt::print(stderr, "prompt {} tokens after {} kept in {:.2f} s, {} tokens at {:.1f} tok/s\n",
             answer.prompt_tokens, kept, answer.prompt_seconds, answer.ids.size(),
             answer.decode_seconds > 0 ? (generated - 1) / answer.decode_seconds : 0.0);
}

void run(Options& options) {
  const auto engine = options.model.load();
  if (!engine->has_chat_template())
    throw Error(ErrorKind::unsupported, "this checkpoint has no chat template; use 'sluice run --raw'");
  constexpr std::int64_t kDefaultContext = 8192;
  const std::int64_t wanted = options.generation.context(*engine, kDefaultContext);
  const auto session = engine->new_session(std::min(wanted, engine->summary().max_positions));
  Conversation conversation(*engine, *session, options.system);
  fmt::print(stderr, "Type a message; Ctrl-C stops an answer, Ctrl-D ends.\n");
  std::signal(SIGINT, on_interrupt);
  for (std::string line; fmt::print(stderr, "\n> "), std::getline(std::cin, line);) {
    if (line.empty()) continue;
    interrupted = 0;
    try {
      const GenerateResult answer = conversation.ask(line, options.generation.resolve());
      fmt::print("\n");
      std::fflush(stdout);
      if (options.stats) print_stats(answer, conversation.kept());
    } catch (const Error& error) {
      fmt::print(stderr, "sluice: {}\n", error.what());
    }
  }
  fmt::print(stderr, "\n");
}

}  // namespace

void add_chat(Parser& parser) {
  auto options = std::make_shared<Options>();
  Command command = parser.add("chat", "Talk with a model");
  command.option("-m,--model", options->model.model, "Checkpoint folder or bundled model");
  command.option("--system", options->system, "What the model is told before the conversation");
  command.flag("--stats", options->stats, "Print speed and what was kept to stderr");
  add_engine_options(command, options->model);
  options->generation.add(command);
  command.on_run([options] { run(*options); });
}

}  // namespace sluice::cli
