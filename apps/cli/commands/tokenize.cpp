// sluice tokenize: text to token ids and back.
#include <fmt/core.h>
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "options/input.h"
#include "options/model_options.h"
#include "sluice/error.h"
#include "terminal/output.h"
#include "terminal/terminal.h"

namespace sluice::cli {

namespace {

struct TokenizeArguments {
  ModelOptions model;
  std::optional<std::string> text;
  std::string file;
  bool decode = false;
  bool special = false;
  bool json = false;
};

void run(TokenizeArguments& options) {
  const auto text = input_text(options.text, options.file);
  if (!text) fail_usage("TEXT, -f FILE, or something through a pipe");
  options.model.engine.backend = "cpu";  // maps the files, copies nothing
  const auto engine = options.model.load();
  const std::vector<std::int32_t> ids =
      options.decode ? parse_tokens(*text, "the text to decode") : engine->encode(*text, options.special);
  if (options.decode) {
    const std::int64_t vocabulary = engine->summary().vocab;
    for (const std::int32_t id : ids)
      if (id < 0 || id >= vocabulary)
        throw Error(ErrorKind::input,
                    fmt::format("{} is no token of this model, whose ids are 0 to {}", id, vocabulary - 1));
    const std::string decoded = engine->decode(ids, false);
    if (options.json) return print_json({{"ids", ids}, {"text", decoded}});
    return fmt::print("{}\n", is_terminal(stdout) ? printable(decoded, true) : decoded);
  }
  std::vector<std::string> pieces;
  for (const std::int32_t id : ids) pieces.push_back(engine->decode({&id, 1}, false));
  if (options.json) return print_json({{"ids", ids}, {"pieces", pieces}});
  fmt::print("{}\n", fmt::join(ids, ","));
}

}  // namespace

void add_tokenize(Parser& parser) {
  auto options = std::make_shared<TokenizeArguments>();
  Command command = parser.add("tokenize", "Turn text into token ids, or back with --decode");
  command.option("TEXT", options->text, "The text, or ids as 1,2,3 with --decode; - and @FILE as in run");
  add_model_option(command, options->model.model);
  command.option("-f,--file", options->file, "Read the text from this file");
  command.flag("--decode", options->decode, "Turn ids into text");
  command.flag("--special", options->special,
               "Add what the model wants around a text, e.g. a token that begins it");
  command.flag("--json", options->json, kJsonMeaning);
  command.example("sluice tokenize \"Once upon a time\" --json", "ids and the pieces they stand for");
  command.example("sluice tokenize --decode 7,22,5", "the text of ids");
  command.on_run([options] { run(*options); });
}

}  // namespace sluice::cli
