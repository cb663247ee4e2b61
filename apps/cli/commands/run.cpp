// sluice run: continues or answers a prompt.
#include <fmt/core.h>
#include <sys/resource.h>

#include <memory>
#include <optional>

#include "chat/responder.h"
#include "commands/commands.h"
#include "commands/experts_map.h"
#include "commands/remote.h"
#include "json.h"
#include "options/answer.h"
#include "options/cache_disk.h"
#include "options/generation.h"
#include "options/input.h"
#include "sluice/error.h"
#include "sluice/experts.h"
#include "terminal/output.h"
#include "terminal/progress.h"
#include "terminal/signals.h"

namespace sluice::cli::commands {

namespace {

// The bundled models write stories; `sluice run` without a prompt begins one.
constexpr const char* kDefaultPrompt = "Once upon a time";

struct RunArguments {
  options::Model model;
  RemoteOptions remote;
  options::Generation generation;
  options::Answer answer;
  std::optional<std::string> prompt;
  std::string file;
  std::string prompt_tokens;
  std::string cache_disk;
  bool raw = false;
  bool stats = false;
  bool json = false;
  std::string experts_map;
  std::string experts_profile;
};

// The input of the model.
struct Prompt {
  std::string text;
  std::vector<std::int32_t> ids;
  std::string rendered = {};  // by the chat template
  bool continued = false;     // whether it is the beginning of the text rather than a message to answer
};

std::uint64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

const char* name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::cancelled:
      return "interrupted";
  }
  return "";
}

// A bundled story model continues the first words of a story unless they are an instruction.
Prompt make_prompt(const Engine& engine, const RunArguments& options, const std::string& text) {
  if (!options.prompt_tokens.empty())
    return {"", options::parse_tokens(options.prompt_tokens, "--prompt-tokens"), "", true};
  const bool story = options.model.bundled() && text.starts_with(kDefaultPrompt) && !options.answer.given();
  if (options.raw || story || !engine.has_chat_template()) return {text, engine.encode(text, true), "", true};
  const Json messages{{{"role", "user"}, {"content", text}}};
  const std::string rendered = engine.render_chat(dump(messages), true, options.answer.template_variables());
  return {text, engine.encode(rendered), rendered, false};
}

void print_stats(const GenerateResult& result, std::uint64_t seed) {
  const auto generated = static_cast<double>(result.ids.size());
  fmt::print(
      stderr,
      "\nprompt {} tokens in {:.2f} s ({:.1f} tok/s), first token after {:.2f} s, {} tokens at {:.1f} tok/s, "
      "peak memory {:.0f} MB, seed {}\n",
      result.prompt_tokens, result.prompt_seconds,
      static_cast<double>(result.prompt_tokens) / result.prompt_seconds, result.first_token_seconds,
      result.ids.size(), result.decode_seconds > 0 ? (generated - 1) / result.decode_seconds : 0.0,
      static_cast<double>(peak_bytes()) / 1e6, seed);
}

void print_experts(const ExpertUsage& usage, double tokens) {
  if (usage.slots == 0) return;
  fmt::print(
      stderr,
      "experts: {} per layer in memory, {:.1f}% of {} uses found there, {} of {} misses prefetched, {} "
      "prefetched but not used, {:.1f} MB read per token, {:.2f} s spent waiting for the disk ({})\n",
      usage.slots, 100 * usage.hit_rate(), usage.hits + usage.misses, usage.foreseen, usage.misses,
      usage.unused, static_cast<double>(usage.bytes_read) / 1e6 / tokens, usage.wait_seconds, usage.reader);
}

Json to_json(const ExpertUsage& usage) {
  return {{"slots", usage.slots},
          {"hits", usage.hits},
          {"misses", usage.misses},
          {"foreseen", usage.foreseen},
          {"unused", usage.unused},
          {"bytes_read", usage.bytes_read},
          {"wait_seconds", usage.wait_seconds}};
}

Json to_json(const GenerateResult& result) {
  return {{"text", result.text},
          {"ids", result.ids},
          {"finish_reason", name_of(result.reason)},
          {"prompt_tokens", result.prompt_tokens},
          {"prompt_seconds", result.prompt_seconds},
          {"first_token_seconds", result.first_token_seconds},
          {"decode_seconds", result.decode_seconds}};
}

// A map needs counts, which only cached experts have: so all of them are cached.
void keep_counts(EngineOptions& engine) {
  constexpr std::int64_t kAll = std::int64_t{1} << 30;
  if (engine.memory == 0 && engine.vram == 0 && engine.expert_slots == 0) engine.expert_slots = kAll;
}

// The server knows its model's template and settings; options that need a local model are rejected.
void run_remotely(const RunArguments& options, const std::string& text) {
  if (options.json || options.stats || !options.prompt_tokens.empty() || !options.experts_map.empty() ||
      !options.experts_profile.empty() || options.answer.given())
    throw Error(ErrorKind::input,
                "--json, --stats, --prompt-tokens, --experts-map, --experts-profile and the options for "
                "structured output do not work with --server");
  terminal::note_interrupts();
  if (options.raw) {
    terminal::print_now(text);
    continue_remote(options.remote, options.generation, text);
  } else {
    ask_remote(options.remote, options.generation, {{{"role", "user"}, {"content", text}}});
  }
  terminal::print_now("\n");
  terminal::flush_output();
  terminal::stop_if_interrupted();
}

void run(RunArguments& options) {
  if (!options.experts_map.empty() || !options.experts_profile.empty()) keep_counts(options.model.engine);
  options.answer.resolve();
  options.model.follow_if_asked();
  const std::string text = options::input_text(options.prompt, options.file).value_or(kDefaultPrompt);
  if (!options.remote.url.empty()) return run_remotely(options, text);
  const auto engine = options.model.load();
  const Prompt prompt = make_prompt(*engine, options, text);
  GenerateOptions generation = options.generation.resolve(options.model.folder());
  AnswerPlan plan;
  if (options.answer.given()) plan = options.answer.plan(*engine, prompt.rendered, !prompt.continued);
  generation.guide = plan.guide;
  generation.skip_special = !plan.shows_special;
  SchedulerOptions cache{.context = options.generation.context(*engine, prompt.ids.size())};
  options::read_cache_disk(options.cache_disk, cache);
  const auto show = [&](const std::string& part) { terminal::print_now(terminal::for_stdout(part)); };
  terminal::note_interrupts();
  // A large mapped model is read from disk while the prompt is computed.
  std::optional<terminal::Waiting> waiting(std::in_place, "reading the prompt");
  const auto begin = [&] {
    if (!waiting) return;
    waiting.reset();
    // A story is shown from its first word.
    if (!options.json && prompt.continued) show(prompt.text);
  };
  const auto print = [&](const GeneratedToken& token) {
    begin();
    if (!options.json) show(token.text);
    return !terminal::interrupted();
  };
  const auto responder = chat::make_responder(engine, cache);
  auto [result, kept] = responder->answer(prompt.ids, generation, print);
  result.prompt_tokens += kept;
  begin();
  const ExpertUsage experts = expert_usage(*engine);
  if (options.json) {
    Json json{{"model", options.model.model}, {"seed", generation.sampling.seed}};
    json.update(to_json(result));
    if (options.answer.given()) json["answer"] = options::answer_json(plan, result.text);
    json["peak_bytes"] = peak_bytes();
    json["experts"] = to_json(experts);
    terminal::print_json(json);
  } else {
    terminal::print_now("\n");
    if (options.answer.demands_form() && result.reason == FinishReason::length)
      fmt::print(stderr, "sluice: the answer was cut after {} tokens; -n allows more\n", result.ids.size());
  }
  if (options.stats) {
    print_stats(result, generation.sampling.seed);
    print_experts(experts, static_cast<double>(prompt.ids.size() + result.ids.size()));
  }
  if (!options.experts_map.empty()) write_experts_map(experts, options.model.model, options.experts_map);
  if (!options.experts_profile.empty()) write_expert_profile(experts, options.experts_profile);
  terminal::flush_output();
  terminal::stop_if_interrupted();
}

}  // namespace

void add_run(Parser& parser) {
  auto options = std::make_shared<RunArguments>();
  Command command = parser.add("run", "Answer a prompt, or continue it with --raw");
  command.option("PROMPT", options->prompt,
                 "The prompt; - reads standard input and @FILE a file. If absent: what comes through a pipe, "
                 "or the beginning of a story");
  options::add_model(command, options->model.model);
  command.option("-f,--file", options->file, "Read the prompt from this file");
  command.option("--prompt-tokens", options->prompt_tokens, "Token ids as the prompt: 1,2,3 or @FILE");
  command.option("--cache-disk", options->cache_disk, options::kCacheDiskMeaning);
  command.flag("--raw", options->raw, "Use the prompt as it is, without the chat template");
  command.flag("--stats", options->stats, "Print speed, memory and seed to stderr");
  command.option("--experts-map", options->experts_map,
                 "Write an SVG file that shows how often each expert was needed, one row per layer");
  command.option("--experts-profile", options->experts_profile, options::kProfileMeaning);
  command.flag("--json", options->json, options::kJsonMeaning);
  options->generation.add(command);
  options->answer.add(command);
  options->remote.add(command);
  options::add_engine(command, options->model);
  command.example("sluice run \"Once upon a time there was a dragon who\"", "continue a story");
  command.example("echo \"Tell me a story.\" | sluice run --seed 3 --stats", "read the prompt from a pipe");
  command.example("sluice run -m ~/qwen3.6-35b-4bit --memory 12GB -f question.txt",
                  "run a model larger than memory");
  command.example("sluice run \"A cat, please.\" --schema cat.json", "get an answer that a program can read");
  command.on_run([options] { run(*options); });
}

}  // namespace sluice::cli::commands
