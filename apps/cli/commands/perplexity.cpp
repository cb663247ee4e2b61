// sluice perplexity: how well a model predicts a text file.
#include "sluice/perplexity.h"

#include <fmt/core.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands/commands.h"
#include "options/input.h"
#include "options/model.h"
#include "sluice/cache_quality.h"
#include "sluice/error.h"
#include "terminal/output.h"
#include "terminal/progress.h"
#include "terminal/signals.h"

namespace sluice::cli::commands {

namespace {

struct PerplexityArguments {
  options::Model model;
  std::string file;
  PerplexityOptions windows;
  std::string against;
  std::int64_t contexts = 0;
  bool json = false;
};

// Compares the cache format of the options with another one.
void compare(PerplexityArguments& options, const std::string& text) {
  const auto engine = options.model.load();
  options::Model other = options.model;
  other.kv = options.against;
  const auto against = other.load();
  CacheQuality result;
  {
    terminal::Progress progress("comparing");
    result = compare_caches(
        *engine, *against, text,
        options.windows.context != 0 ? options.windows.context : engine->summary().max_positions,
        options.contexts, [&](std::uint64_t done, std::uint64_t total) { progress.update(done, total); });
  }
  if (options.json) {
    const nlohmann::ordered_json json{{"contexts", result.contexts},
                                      {"tokens", result.tokens},
                                      {"nats_per_token", result.nats_per_token},
                                      {"nats_per_token_against", result.nats_per_token_against},
                                      {"kl", result.divergence},
                                      {"kl_of_worst_context", result.worst_context},
                                      {"top1_agreement", result.agreement}};
    return terminal::print_json(json);
  }
  fmt::print(
      "{:.5f} nats per token with a cache of {}, {:.5f} with {} (perplexity {:+.3f}%); KL {:.2e}, at worst "
      "{:.2e} in a "
      "context; same first choice {:.2f}% ({} tokens in {} contexts)\n",
      result.nats_per_token, options.model.kv, result.nats_per_token_against, options.against,
      100 * std::expm1(result.nats_per_token - result.nats_per_token_against), result.divergence,
      result.worst_context, 100 * result.agreement, result.tokens, result.contexts);
}

void run(PerplexityArguments& options) {
  const std::string text = options::read_input(options.file);
  terminal::note_interrupts();
  if (!options.against.empty()) return compare(options, text);
  const auto engine = options.model.load();
  PerplexityResult result;
  {
    terminal::Progress progress("scoring");
    result = measure_perplexity(*engine, text, options.windows, [&](std::uint64_t done, std::uint64_t total) {
      terminal::stop_if_interrupted();
      progress.update(done, total);
    });
  }
  if (options.json) {
    const nlohmann::ordered_json json{{"documents", result.documents},
                                      {"windows", result.windows},
                                      {"tokens", result.tokens},
                                      {"bytes", result.bytes},
                                      {"nats_per_token", result.nats_per_token},
                                      {"bits_per_byte", result.bits_per_byte}};
    terminal::print_json(json);
  } else {
    fmt::print("{:.4f} nats per token, {:.4f} bits per byte ({} tokens in {} windows of {} documents)\n",
               result.nats_per_token, result.bits_per_byte, result.tokens, result.windows, result.documents);
  }
}

}  // namespace

void add_perplexity(Parser& parser) {
  auto options = std::make_shared<PerplexityArguments>();
  Command command = parser.add("perplexity", "Measure how well a model predicts a text");
  command.required("MODEL", options->model.model, options::kModelMeaning);
  command.required("FILE", options->file,
                   "A text file, or - for standard input; a line <|endoftext|> separates documents");
  command.option("--ctx", options->windows.context,
                 "Window length in tokens for documents that are longer; 0: the model's maximum",
                 {0, kMostTokens});
  command.option("--stride", options->windows.stride,
                 "Tokens by which windows advance; fewer give each token more context; 0: the window length",
                 {0, kMostTokens});
  command.checked("--against", options->against,
                  "Compare the cache of --kv-bits with this one as the reference, on joined documents cut "
                  "into contexts of --ctx tokens",
                  options::check_cache);
  command.option("--contexts", options->contexts, "With --against: number of contexts; 0: the whole text",
                 {0, kMostTokens});
  command.flag("--json", options->json, options::kJsonMeaning);
  options::add_engine(command, options->model);
  command.example("sluice perplexity delta-story story.txt", "score a text");
  command.example("sluice perplexity delta-story stories.txt --ctx 2048 --kv-bits 4 --against bf16",
                  "measure what a 4-bit KV cache costs");
  command.on_run([options] { run(*options); });
}

}  // namespace sluice::cli::commands
