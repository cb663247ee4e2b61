#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "command_table.h"
#include "terminal/terminal.h"

namespace sluice::cli {

namespace {

constexpr int kWidest = 100;
constexpr int kIndent = 26;  // column of the descriptions of options

std::string wrapped(const std::string& text, int indent, int width) {
  std::istringstream words(text);
  std::string result;
  int column = indent;
  for (std::string word; words >> word;) {
    const int length = terminal::columns_of(word);
    if (column > indent && column + 1 + length > width) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += length;
  }
  return result;
}

std::string bold(const std::string& text) {
  return terminal::styled(terminal::Style::bold, text, stdout);
}

// "-m, --model TEXT"
std::string shown_names(const OptionInfo& option) {
  std::string names = fmt::format("{}", fmt::join(option.all_names(), ", "));
  return option.flag() || option.argument() ? names : names + " " + option.value;
}

std::string shown_meaning(const OptionInfo& option) {
  std::string text = option.meaning;
  if (!option.choices.empty()) text += fmt::format(" ({})", fmt::join(option.choices, ", "));
  if (option.required && !option.argument()) text += " (required)";
  if (!option.fallback.empty()) text += fmt::format(" [default: {}]", option.fallback);
  return text;
}

std::string row(const std::string& name, const std::string& meaning, int width) {
  std::string line = "  " + name;
  const int used = line.size();
  line += used + 2 > kIndent ? "\n" + std::string(kIndent, ' ') : std::string(kIndent - used, ' ');
  return line + wrapped(meaning, kIndent, width) + "\n";
}

}  // namespace

std::vector<std::string> OptionInfo::all_names() const {
  std::vector<std::string> all;
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) all.push_back(name);
  return all;
}

std::string CommandInfo::usage() const {
  std::string text = "sluice " + name;
  if (!options.empty()) text += " [OPTIONS]";
  for (const OptionInfo& option : options)
    if (option.argument()) text += option.required ? " " + option.names : " [" + option.names + "]";
  return text;
}

const CommandInfo* ProgramInfo::find(const std::string& name) const {
  const auto found = std::find_if(commands.begin(), commands.end(),
                                  [&](const CommandInfo& command) { return command.name == name; });
  return found == commands.end() ? nullptr : &*found;
}

std::string program_help(const ProgramInfo& program, int width) {
  width = std::min(width, kWidest);
  std::string text = wrapped(program.meaning, 0, width) + "\n\n";
  text += bold("Usage:") + " sluice COMMAND [OPTIONS] [ARGUMENTS]\n\n" + bold("Commands:") + "\n";
  for (const CommandInfo& command : program.commands) text += row(command.name, command.meaning, width);
  text += "\n" + bold("Options:") + "\n";
  text += row("-h, --help", "Print this help, or the help of a command", width);
  text += row("--version", "Print the version, the backends and the CPU's instruction set", width);
  text += "\n" + bold("Examples:") + "\n";
  for (const Example& example :
       {Example{"sluice run", "tell a story with the bundled model"}, Example{"sluice chat", "chat with it"},
        Example{"sluice help run", "all options of one command"}})
    text += row(example.command, example.meaning, width);
  return text;
}

std::string command_help(const CommandInfo& command, int width) {
  width = std::min(width, kWidest);
  std::string text =
      wrapped(command.meaning, 0, width) + "\n\n" + bold("Usage:") + " " + command.usage() + "\n";
  std::vector<std::string> groups;
  for (const OptionInfo& option : command.options)
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) groups.push_back(option.group);
  for (const std::string& group : groups) {
    text += "\n" + bold(group + ":") + "\n";
    for (const OptionInfo& option : command.options)
      if (option.group == group) text += row(shown_names(option), shown_meaning(option), width);
  }
  if (!command.note.empty()) text += "\n" + wrapped(command.note, 0, width) + "\n";
  if (!command.examples.empty()) text += "\n" + bold("Examples:") + "\n";
  for (const Example& example : command.examples)
    text += fmt::format("  {}\n      {}\n", example.command, wrapped(example.meaning, 6, width));
  return text;
}

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  // The edit distance, with swapped neighbours counting as one edit.
  const auto distance = [](const std::string& a, const std::string& b) {
    std::vector<std::vector<std::size_t>> rows(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i)
      for (std::size_t j = 0; j <= b.size(); ++j) {
        if (i == 0 || j == 0) {
          rows[i][j] = i + j;
          continue;
        }
        rows[i][j] = std::min(
            {rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
          rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
      }
    return rows[a.size()][b.size()];
  };
  std::string best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : known)
    if (const std::size_t edits = distance(word, candidate); edits < least) {
      least = edits;
      best = candidate;
    }
  return best;
}

}  // namespace sluice::cli
