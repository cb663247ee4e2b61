// sluice tokenize: converts text to token ids and back.
#include <fmt/core.h>
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "commands/commands.h"
#include "options/input.h"
#include "options/model.h"
#include "sluice/error.h"
#include "terminal/output.h"

namespace sluice::cli::commands {

namespace {

struct TokenizeArguments {
  options::Model model;
  std::optional<std::string> text;
  std::string file;
  bool decode = false;
  bool special = false;
  bool json = false;
};

void run(TokenizeArguments& options) {
  const auto text = options::input_text(options.text, options.file);
  if (!text) fail_usage("TEXT, -f FILE, or text through a pipe");
  options.model.engine.backend = "cpu";  // maps the files without copying
  const auto engine = options.model.load();
  const std::vector<std::int32_t> ids = options.decode ? options::parse_tokens(*text, "the text to decode")
                                                       : engine->encode(*text, options.special);
  if (options.decode) {
    const std::int64_t vocabulary = engine->summary().vocab;
    for (const std::int32_t id : ids)
      if (id < 0 || id >= vocabulary)
        throw Error(ErrorKind::input,
                    fmt::format("token id {} is outside the vocabulary, 0 to {}", id, vocabulary - 1));
    const std::string decoded = engine->decode(ids, false);
    if (options.json) return terminal::print_json({{"ids", ids}, {"text", decoded}});
    return fmt::print("{}\n", terminal::for_stdout(decoded));
  }
  std::vector<std::string> pieces;
  for (const std::int32_t id : ids) pieces.push_back(engine->decode({&id, 1}, false));
  if (options.json) return terminal::print_json({{"ids", ids}, {"pieces", pieces}});
  fmt::print("{}\n", fmt::join(ids, ","));
}

}  // namespace

void add_tokenize(Parser& parser) {
  auto options = std::make_shared<TokenizeArguments>();
  Command command = parser.add("tokenize", "Convert text to token ids, or back with --decode");
  command.option("TEXT", options->text,
                 "The text, or with --decode ids such as 1,2,3; - reads standard input and @FILE a file");
  options::add_model(command, options->model.model);
  command.option("-f,--file", options->file, "Read the text from this file");
  command.flag("--decode", options->decode, "Convert ids to text");
  command.flag("--special", options->special,
               "Add the special tokens that the model expects around a text, e.g. one that begins it");
  command.flag("--json", options->json, options::kJsonMeaning);
  command.example("sluice tokenize \"Once upon a time\" --json",
                  "print ids and the pieces of text they stand for");
  command.example("sluice tokenize --decode 7,22,5", "print the text of ids");
  command.on_run([options] { run(*options); });
}

}  // namespace sluice::cli::commands
