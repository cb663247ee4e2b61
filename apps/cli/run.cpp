// sluice run: continue a prompt, or answer it.
#include <fmt/core.h>
#include <sys/resource.h>

#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "experts_map.h"
#include "generation_options.h"
#include "sluice/error.h"
#include "sluice/experts.h"
#include "sluice/session.h"

namespace sluice::cli {

namespace {

// The bundled models tell stories; a bare `sluice run` starts one.
constexpr const char* kDefaultPrompt = "Once upon a time";

volatile std::sig_atomic_t interrupted = 0;

// The first one ends the answer, a second one the program.
void on_interrupt(int) {
  interrupted = 1;
  std::signal(SIGINT, SIG_DFL);
}

struct Options {
  ModelOptions model;
  GenerationOptions generation;
  std::string prompt = kDefaultPrompt;
  bool raw = false;
  bool stats = false;
  bool json = false;
  std::string experts_map;
  std::string experts_profile;
};

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
}

// Whether the prompt is the beginning of the text and not a message to answer. A bundled story model
// continues a story's first words unless it is told to do something.
bool continues(const Engine& engine, const Options& options) {
  const bool story = options.model.bundled() && options.prompt.starts_with(kDefaultPrompt);
  return options.raw || story || !engine.has_chat_template();
}

std::vector<std::int32_t> encode_prompt(const Engine& engine, const Options& options) {
  if (continues(engine, options)) return engine.encode(options.prompt, true);
  const nlohmann::ordered_json messages{{{"role", "user"}, {"content", options.prompt}}};
  return engine.encode(engine.render_chat(messages.dump()));
}

void print_stats(const GenerateResult& result) {
  const auto generated = static_cast<double>(result.ids.size());
  fmt::print(
      stderr,
      "\nprompt {} tokens in {:.2f} s ({:.1f} tok/s), first token after {:.2f} s, {} tokens at {:.1f} tok/s, "
      "peak memory {:.0f} MB\n",
      result.prompt_tokens, result.prompt_seconds,
      static_cast<double>(result.prompt_tokens) / result.prompt_seconds, result.first_token_seconds,
      result.ids.size(), result.decode_seconds > 0 ? (generated - 1) / result.decode_seconds : 0.0,
      peak_megabytes());
}

void print_experts(const ExpertUsage& usage, double tokens) {
  if (usage.slots == 0) return;
  fmt::print(
      stderr,
      "experts: {} a layer in memory, {:.1f}% of {} found there, {} of {} others read ahead and {} in vain, "
      "{:.1f} MB read a token, {:.2f} s waited for the disk ({})\n",
      usage.slots, 100 * usage.hit_rate(), usage.hits + usage.misses, usage.foreseen, usage.misses,
      usage.unused, static_cast<double>(usage.bytes_read) / 1e6 / tokens, usage.wait_seconds, usage.reader);
}

nlohmann::ordered_json to_json(const ExpertUsage& usage) {
  return {{"slots", usage.slots},
          {"hits", usage.hits},
          {"misses", usage.misses},
          {"foreseen", usage.foreseen},
          {"unused", usage.unused},
          {"bytes_read", usage.bytes_read},
          {"wait_seconds", usage.wait_seconds}};
}

void run(Options& options) {
  const auto engine = options.model.load();
  const std::vector<std::int32_t> prompt = encode_prompt(*engine, options);
  const GenerateOptions generation = options.generation.resolve();
  const auto session = engine->new_session(options.generation.context(*engine, prompt.size()));
  // A story is read from its first word.
  if (!options.json && continues(*engine, options)) fmt::print("{}", options.prompt);
  std::signal(SIGINT, on_interrupt);
  const GenerateResult result = generate(*session, prompt, generation, [&](const GeneratedToken& token) {
    if (!options.json) fmt::print("{}", token.text);
    std::fflush(stdout);
    return interrupted == 0;
  });
  const ExpertUsage experts = expert_usage(*engine);
  if (options.json) {
    const nlohmann::ordered_json json{{"text", result.text},
                                      {"ids", result.ids},
                                      {"prompt_tokens", result.prompt_tokens},
                                      {"prompt_seconds", result.prompt_seconds},
                                      {"first_token_seconds", result.first_token_seconds},
                                      {"decode_seconds", result.decode_seconds},
                                      {"peak_bytes", peak_megabytes() * 1e6},
                                      {"experts", to_json(experts)}};
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("\n");
  }
  if (options.stats) {
    print_stats(result);
    print_experts(experts, static_cast<double>(prompt.size() + result.ids.size()));
  }
  if (!options.experts_map.empty()) write_experts_map(experts, options.experts_map);
  if (!options.experts_profile.empty()) write_expert_profile(experts, options.experts_profile);
  if (interrupted != 0) throw Interrupted();
}

}  // namespace

void add_run(Parser& parser) {
  auto options = std::make_shared<Options>();
  Command command = parser.add("run", "Answer a prompt, or continue it with --raw");
  command.option("PROMPT", options->prompt, "The prompt");
  command.option("-m,--model", options->model.model, "Checkpoint folder or bundled model");
  command.flag("--raw", options->raw, "No chat template: the prompt as it is");
  command.flag("--stats", options->stats, "Print speed and memory to stderr");
  command.option(
      "--experts-map", options->experts_map,
      "Draw which experts were needed into this PNG, a row a layer (with --memory or --expert-slots)");
  command.option("--experts-profile", options->experts_profile, kProfileMeaning);
  command.flag("--json", options->json, "Machine-readable output");
  add_engine_options(command, options->model);
  options->generation.add(command);
  command.on_run([options] { run(*options); });
}

}  // namespace sluice::cli
