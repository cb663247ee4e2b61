// sluice template: renders a conversation as a prompt.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "commands/commands.h"
#include "options/input.h"
#include "options/model.h"
#include "sluice/error.h"
#include "terminal/output.h"

namespace sluice::cli::commands {

namespace {

struct TemplateArguments {
  options::Model model;
  std::string file;
  bool no_prompt = false;
  bool json = false;
};

// A list of messages, or an object with messages, tools and other variables of the template.
std::string read_conversation(const std::string& file) {
  std::string text = options::read_input(file);
  const auto all = nlohmann::ordered_json::parse(text, nullptr, false);
  if (all.is_array() || (all.is_object() && all.contains("messages"))) return text;
  throw Error(
      ErrorKind::input,
      fmt::format("'{}' contains neither an array of messages nor an object with the key \"messages\"",
                  file));
}

void run(TemplateArguments& options) {
  const std::string conversation = read_conversation(options.file);
  options.model.engine.backend = "cpu";  // maps the files without copying
  const auto engine = options.model.load();
  const std::string text = engine->render_chat(conversation, !options.no_prompt);
  if (options.json) return terminal::print_json({{"text", text}, {"tokens", engine->encode(text).size()}});
  fmt::print("{}", terminal::for_stdout(text));
}

}  // namespace

void add_template(Parser& parser) {
  auto options = std::make_shared<TemplateArguments>();
  Command command = parser.add("template", "Render a conversation with the model's chat template");
  command.required("FILE", options->file,
                   "A JSON file, or - for standard input: an array of messages, or an object with "
                   "\"messages\", \"tools\" and other variables of the template");
  options::add_model(command, options->model.model);
  command.flag("--no-generation-prompt", options->no_prompt,
               "End after the last message, without the beginning of an answer");
  command.flag("--json", options->json, options::kJsonMeaning);
  command.example("echo '[{\"role\": \"user\", \"content\": \"Hello\"}]' | sluice template -",
                  "render one message");
  command.on_run([options] { run(*options); });
}

}  // namespace sluice::cli::commands
