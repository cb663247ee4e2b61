// sluice perplexity: how well a model predicts a text file.
#include "sluice/perplexity.h"

#include <fmt/core.h>

#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "command.h"
#include "model_options.h"
#include "progress.h"
#include "sluice/cache_quality.h"
#include "sluice/error.h"

namespace sluice::cli {

namespace {

struct Options {
  ModelOptions model;
  std::string file;
  std::int64_t context = 0;
  std::string against;
  std::int64_t contexts = 0;
  bool json = false;
};

// The options' cache against another one.
void compare(Options& options, const std::string& text) {
  const auto engine = options.model.load();
  ModelOptions other = options.model;
  other.kv = options.against;
  const auto against = other.load();
  CacheQuality result;
  {
    Progress progress("comparing");
    result = compare_caches(
        *engine, *against, text, options.context != 0 ? options.context : engine->summary().max_positions,
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
    fmt::print("{}\n", json.dump(2));
    return;
  }
  fmt::print(
      "{:.5f} nats a token with a cache of {}, {:.5f} with {} (perplexity {:+.3f}%); KL {:.2e}, at worst "
      "{:.2e} in a "
      "context; same first choice {:.2f}% ({} tokens in {} contexts)\n",
      result.nats_per_token, options.model.kv, result.nats_per_token_against, options.against,
      100 * std::expm1(result.nats_per_token - result.nats_per_token_against), result.divergence,
      result.worst_context, 100 * result.agreement, result.tokens, result.contexts);
}

void run(Options& options) {
  std::ifstream file(options.file, std::ios::binary);
  if (!file) throw Error(ErrorKind::input, fmt::format("cannot read '{}'", options.file));
  std::stringstream text;
  text << file.rdbuf();
  if (!options.against.empty()) return compare(options, text.str());
  const auto engine = options.model.load();
  PerplexityResult result;
  {
    Progress progress("scoring");
    result =
        measure_perplexity(*engine, text.str(), options.context,
                           [&](std::uint64_t done, std::uint64_t total) { progress.update(done, total); });
  }
  if (options.json) {
    const nlohmann::ordered_json json{{"documents", result.documents},
                                      {"tokens", result.tokens},
                                      {"bytes", result.bytes},
                                      {"nats_per_token", result.nats_per_token},
                                      {"bits_per_byte", result.bits_per_byte}};
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{:.4f} nats a token, {:.4f} bits a byte ({} tokens in {} documents)\n", result.nats_per_token,
               result.bits_per_byte, result.tokens, result.documents);
  }
}

}  // namespace

void add_perplexity(Parser& parser) {
  auto options = std::make_shared<Options>();
  Command command = parser.add("perplexity", "Measure how well a model predicts a text");
  command.required("MODEL", options->model.model, "Checkpoint folder or bundled model");
  command.required("FILE", options->file, "Text; lines <|endoftext|> separate documents");
  command.option("--ctx", options->context, "Cut documents at so many tokens; 0: the model's longest");
  command.option(
      "--against", options->against,
      "Compare caches: this one is the measure of --kv-bits, on joined documents cut into contexts of --ctx "
      "tokens");
  command.option("--contexts", options->contexts, "With --against: so many contexts; 0: the whole text");
  command.flag("--json", options->json, "Machine-readable output");
  add_engine_options(command, options->model);
  command.on_run([options] { run(*options); });
}

}  // namespace sluice::cli
