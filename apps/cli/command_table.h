// Commands and their options as data, for help, manual page and completions.
#pragma once

#include <string>
#include <vector>

namespace sluice::cli {

struct OptionInfo {
  std::string names;  // "-m,--model", or "PROMPT" for an argument
  std::string value;  // the kind of its value, such as "N"; empty for a flag
  std::string meaning;
  std::string fallback;  // the default as text; empty: not shown
  std::string group;     // the heading in the help
  std::vector<std::string> choices;
  bool required = false;
  bool repeated = false;

  bool argument() const { return !names.starts_with('-'); }
  bool flag() const { return value.empty(); }
  std::vector<std::string> all_names() const;
};

struct Example {
  std::string command;
  std::string meaning;
};

struct CommandInfo {
  std::string name;
  std::string meaning;
  std::vector<OptionInfo> options;
  std::string note;  // a paragraph after the options
  std::vector<Example> examples;

  std::string usage() const;  // "sluice run [OPTIONS] [PROMPT]"
};

struct ProgramInfo {
  std::string meaning;
  std::vector<CommandInfo> commands;

  const CommandInfo* find(const std::string& name) const;
};

std::string program_help(const ProgramInfo& program, int width);
std::string command_help(const CommandInfo& command, int width);
// A page for man(1).
std::string manual_page(const ProgramInfo& program);
// A script for "bash", "zsh" or "fish".
std::string completions(const ProgramInfo& program, const std::string& shell);

// The closest of the known words, or nothing.
std::string nearest(const std::string& word, const std::vector<std::string>& known);

}  // namespace sluice::cli
