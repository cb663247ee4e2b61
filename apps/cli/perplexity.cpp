// sluice perplexity: how well a model predicts a text file.
#include "sluice/perplexity.h"

#include <fmt/core.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "command.h"
#include "model_options.h"
#include "progress.h"
#include "sluice/error.h"

namespace sluice::cli {

namespace {

struct Options {
  ModelOptions model;
  std::string file;
  std::int64_t context = 0;
  bool json = false;
};

void run(Options& options) {
  std::ifstream file(options.file, std::ios::binary);
  if (!file) throw Error(ErrorKind::input, fmt::format("cannot read '{}'", options.file));
  std::stringstream text;
  text << file.rdbuf();
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
  command.flag("--json", options->json, "Machine-readable output");
  add_engine_options(command, options->model);
  command.on_run([options] { run(*options); });
}

}  // namespace sluice::cli
