// sluice logits: the model's raw output for given token ids.
#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>

#include "command.h"
#include "model_options.h"
#include "sluice/error.h"
#include "sluice/logits_file.h"
#include "sluice/session.h"

namespace sluice::cli {

namespace {

struct Options {
  ModelOptions model;
  std::string tokens;
  std::string out;
  std::int64_t greedy = 0;
  bool rounded = false;
};

std::vector<std::int32_t> parse_tokens(const std::string& text) {
  std::string list = text;
  if (text.starts_with("@")) {
    std::ifstream file(text.substr(1));
    if (!file) throw Error(ErrorKind::input, fmt::format("cannot read '{}'", text.substr(1)));
    std::stringstream content;
    content << file.rdbuf();
    list = std::move(content).str();
  }
  std::replace_if(
      list.begin(), list.end(), [](unsigned char c) { return c == ',' || std::isspace(c) != 0; }, ' ');
  std::vector<std::int32_t> ids;
  std::istringstream words(list);
  for (std::string word; words >> word;) {
    std::size_t used = 0;
    std::int32_t id = -1;
    try {
      id = std::stoi(word, &used);
    } catch (const std::exception&) {
      used = 0;
    }
    if (used != word.size() || id < 0)
      throw Error(ErrorKind::input, fmt::format("--tokens: '{}' is no token id", word));
    ids.push_back(id);
  }
  if (ids.empty()) throw Error(ErrorKind::input, "--tokens names no token");
  return ids;
}

void run(Options& options) {
  const std::vector<std::int32_t> tokens = parse_tokens(options.tokens);
  if (options.greedy < 0) throw Error(ErrorKind::input, "--greedy must not be negative");
  // Whoever asks for logits compares them: no shortcut that only speed asks for.
  options.model.engine.exact = options.model.engine.exact || !options.rounded;
  const auto engine = options.model.load();
  write_logits_file(*engine, tokens, options.greedy, options.out);
}

}  // namespace

void add_logits(Parser& parser) {
  auto options = std::make_shared<Options>();
  Command command = parser.add("logits", "Write the logits of given token ids to a safetensors file");
  command.required("MODEL", options->model.model, "Checkpoint folder or bundled model");
  command.required("--tokens", options->tokens, "Ids as 1,2,3 or @FILE");
  command.option("--greedy", options->greedy, "Then choose so many ids, one step at a time");
  command.required("--out", options->out,
                   "File to write: F32 logits [T,vocab] and, with --greedy, I32 greedy [N]");
  command.flag("--rounded", options->rounded,
               "Compute as the other commands do without --exact: with integers on CPUs, in BF16 on GPUs");
  add_engine_options(command, options->model);
  command.on_run([options] { run(*options); });
}

}  // namespace sluice::cli
