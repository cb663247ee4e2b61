// The command tables as a manual page and as shell completions.
#include <fmt/core.h>
#include <fmt/format.h>

#include "command_table.h"
#include "sluice/error.h"

namespace sluice::cli {

namespace {

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

std::string roff(const std::string& text) {
  std::string safe = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
  if (safe.starts_with('.') || safe.starts_with('\'')) safe.insert(0, "\\&");
  return safe;
}

std::string roff_option(const OptionInfo& option) {
  std::string names;
  for (const std::string& name : option.all_names())
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
  if (!option.flag() && !option.argument()) names += fmt::format(" \\fI{}\\fR", roff(option.value));
  std::string meaning = option.meaning;
  if (!option.choices.empty()) meaning += fmt::format(" ({})", fmt::join(option.choices, ", "));
  if (!option.fallback.empty()) meaning += fmt::format(" [default: {}]", option.fallback);
  return fmt::format(".TP\n{}\n{}\n", names, roff(meaning));
}

// Quoted for a shell.
std::string shell_quoted(const std::string& text) {
  return "'" + replaced(text, "'", "'\\''") + "'";
}

std::vector<std::string> option_names(const CommandInfo& command) {
  std::vector<std::string> names{"--help"};
  for (const OptionInfo& option : command.options)
    if (!option.argument())
      for (const std::string& name : option.all_names()) names.push_back(name);
  return names;
}

std::vector<std::string> command_names(const ProgramInfo& program) {
  std::vector<std::string> names;
  for (const CommandInfo& command : program.commands) names.push_back(command.name);
  return names;
}

std::string bash(const ProgramInfo& program) {
  std::string cases;
  for (const CommandInfo& command : program.commands) {
    cases += fmt::format("    {}) words='{}' ;;\n", command.name, fmt::join(option_names(command), " "));
  }
  std::string values;
  for (const CommandInfo& command : program.commands)
    for (const OptionInfo& option : command.options)
      if (!option.choices.empty() && !option.argument())
        for (const std::string& name : option.all_names())
          values +=
              fmt::format("    {}:{}) words='{}' ;;\n", command.name, name, fmt::join(option.choices, " "));
  return fmt::format(R"(# bash completion of sluice, written by 'sluice help --completions bash'
_sluice() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} words=
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{} --help --version' -- "$current"))
    return
  fi
  case "${{COMP_WORDS[1]}}:$previous" in
{}  esac
  if [ -z "$words" ] && [ "${{current:0:1}}" = - ]; then
    case "${{COMP_WORDS[1]}}" in
{}    esac
  elif [ "$previous" = -m ] || [ "$previous" = --model ]; then
    words=$(sluice list --names 2>/dev/null)
  fi
  if [ -n "$words" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}}
complete -o filenames -F _sluice sluice
)",
                     fmt::join(command_names(program), " "), values, cases);
}

std::string zsh(const ProgramInfo& program) {
  const auto bracketed = [](const std::string& text) {
    return replaced(replaced(replaced(text, "\\", "\\\\"), "[", "\\["), "]", "\\]");
  };
  std::string commands;
  std::string cases;
  for (const CommandInfo& command : program.commands) {
    commands +=
        fmt::format("    {}\n", shell_quoted(command.name + ":" + replaced(command.meaning, ":", "\\:")));
    cases += fmt::format("    {}) _arguments", command.name);
    for (const OptionInfo& option : command.options) {
      if (option.argument()) continue;
      const std::string value =
          option.flag()
              ? ""
              : fmt::format(":{}:{}", option.value,
                            option.choices.empty() ? std::string("_files")
                                                   : fmt::format("({})", fmt::join(option.choices, " ")));
      for (const std::string& name : option.all_names())
        cases += " \\\n      " + shell_quoted(fmt::format("{}{}[{}]{}", option.repeated ? "*" : "", name,
                                                          bracketed(option.meaning), value));
    }
    cases += " \\\n      '*:file:_files' ;;\n";
  }
  return fmt::format(R"(#compdef sluice
# zsh completion of sluice, written by 'sluice help --completions zsh'
local -a commands=(
{}  )
if (( CURRENT == 2 )); then
  _describe command commands
  return
fi
shift words
(( CURRENT-- ))
case $words[1] in
{}esac
)",
                     commands, cases);
}

std::string fish(const ProgramInfo& program) {
  std::string text = "# fish completion of sluice, written by 'sluice help --completions fish'\n";
  for (const CommandInfo& command : program.commands) {
    text += fmt::format("complete -c sluice -n __fish_use_subcommand -f -a {} -d {}\n", command.name,
                        shell_quoted(command.meaning));
    for (const OptionInfo& option : command.options) {
      if (option.argument()) continue;
      text += fmt::format("complete -c sluice -n '__fish_seen_subcommand_from {}'", command.name);
      for (const std::string& name : option.all_names())
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!option.flag()) text += " -r";
      if (!option.choices.empty()) text += fmt::format(" -f -a '{}'", fmt::join(option.choices, " "));
      text += " -d " + shell_quoted(option.meaning) + "\n";
    }
  }
  return text;
}

}  // namespace

std::string manual_page(const ProgramInfo& program) {
  std::string page = fmt::format(
      ".TH SLUICE 1 \"\" \"sluice\" \"User Commands\"\n.SH NAME\nsluice \\- runs mixture\\-of\\-experts "
      "language "
      "models\n.SH SYNOPSIS\n.B sluice\n.I COMMAND\n[\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]\n.SH "
      "DESCRIPTION\n{}\n"
      ".SH COMMANDS\n",
      roff(program.meaning));
  for (const CommandInfo& command : program.commands) {
    page += fmt::format(".SS \"{}\"\n{}.\n", roff(command.usage()), roff(command.meaning));
    for (const OptionInfo& option : command.options) page += roff_option(option);
    if (!command.note.empty()) page += fmt::format(".PP\n{}\n", roff(command.note));
    for (const Example& example : command.examples)
      page += fmt::format(".PP\n{}:\n.EX\n    {}\n.EE\n", roff(example.meaning), roff(example.command));
  }
  page +=
      ".SH EXIT STATUS\n.TP\n0\nThe command did what it was asked.\n.TP\n1\nAn error, reported in one "
      "sentence on stderr, or a failed check.\n.TP\n2\nThe command line could not be understood.\n.PP\nAn "
      "interrupted command ends with the signal that interrupted it.\n.SH "
      "ENVIRONMENT\n.TP\nSLUICE_MODELS\nFolders with models, separated by colons, that are searched "
      "first.\n.TP\nHF_HOME, HF_HUB_CACHE\nAs for Hugging Face's own programs, whose cache is searched "
      "too.\n.TP\nNO_COLOR\nIf set, output has no colours.\n.SH "
      "FILES\n.TP\n~/.local/share/sluice/models\nYour models, as 'sluice pull' stores them.\n.TP\n"
      "~/.local/state/sluice/history\nInput history of 'sluice chat'.\n";
  return page;
}

std::string completions(const ProgramInfo& program, const std::string& shell) {
  if (shell == "bash") return bash(program);
  if (shell == "zsh") return zsh(program);
  if (shell == "fish") return fish(program);
  throw Error(ErrorKind::input,
              fmt::format("there are no completions for '{}', only for bash, zsh and fish", shell));
}

}  // namespace sluice::cli
