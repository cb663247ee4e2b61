// sluice help: help on all commands or one, and the same tables as a manual page and as shell completions.
#include <fmt/core.h>

#include <memory>

#include "commands/commands.h"
#include "sluice/error.h"
#include "terminal/terminal.h"

namespace sluice::cli::commands {

namespace {

struct HelpArguments {
  std::string command;
  bool manual = false;
  std::string shell;
};

void run(const ProgramInfo& table, const HelpArguments& options) {
  if (options.manual) return fmt::print("{}", manual_page(table));
  if (!options.shell.empty()) return fmt::print("{}", completions(table, options.shell));
  const int width = terminal::width(stdout);
  if (options.command.empty()) return fmt::print("{}", program_help(table, width));
  if (const CommandInfo* command = table.find(options.command))
    return fmt::print("{}", command_help(*command, width));
  std::vector<std::string> names;
  for (const CommandInfo& command : table.commands) names.push_back(command.name);
  const std::string meant = nearest(options.command, names);
  throw UsageError(fmt::format("there is no command '{}'{}", terminal::printable(options.command),
                               meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant)));
}

}  // namespace

void add_help(Parser& parser) {
  auto options = std::make_shared<HelpArguments>();
  Command command = parser.add("help", "List the commands, or explain one");
  command.option("COMMAND", options->command, "The command to explain; default: list all");
  command.flag("--man", options->manual, "Print the manual page instead");
  command.choice("--completions", options->shell, {"bash", "zsh", "fish"},
                 "Print the completion script for this shell instead");
  command.example("sluice help run", "explain one command");
  command.example("sluice help --completions fish > ~/.config/fish/completions/sluice.fish",
                  "install the completions for fish");
  command.on_run([&parser, options] { run(parser.table(), *options); });
}

}  // namespace sluice::cli::commands
