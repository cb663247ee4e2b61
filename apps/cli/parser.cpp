#include "parser.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "terminal/terminal.h"

namespace sluice::cli {

namespace {

constexpr std::size_t kMostCommands = 64;  // reserved, because the table's entries must not move

template <class T>
constexpr const char* kValueName = "N";
template <>
constexpr const char* kValueName<double> = "X";

template <class T>
std::string shown_default(const T& value) {
  return fmt::format("{}", value);
}

std::string sentence(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '.')) text.pop_back();
  return text;
}

}  // namespace

Command::Command(CLI::App& app, CommandInfo& info, std::function<void(std::function<void()>)> choose)
    : app_(app), info_(info), choose_(std::move(choose)) {}

CLI::Option* Command::add(OptionInfo info, Read read) {
  info.group = info.argument() ? "Arguments" : group_;
  const std::string shown = info.all_names().back();
  CLI::Option* option =
      app_.add_option(info.names, [shown, read = std::move(read)](const CLI::results_t& values) {
        for (const std::string& value : values)
          if (const auto complaint = read(value))
            throw UsageError(fmt::format("{} is '{}', {}", shown, terminal::printable(value), *complaint));
        return true;
      });
  option->type_size(1)->allow_extra_args(false);
  if (info.required) option->required();
  if (info.repeated)
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  else
    option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  info_.options.push_back(std::move(info));
  return option;
}

void Command::option(const char* name, std::string& value, const char* meaning) {
  add({name, "TEXT", meaning, value, "", {}},
      [&value](const std::string& text) -> std::optional<std::string> {
        value = text;
        return std::nullopt;
      });
}

void Command::option(const char* name, std::optional<std::string>& value, const char* meaning) {
  add({name, "TEXT", meaning, "", "", {}}, [&value](const std::string& text) -> std::optional<std::string> {
    value = text;
    return std::nullopt;
  });
}

template <class T>
void Command::option(const char* name, T& value, const char* meaning, Range<T> range) {
  add({name, kValueName<T>, meaning, shown_default(value), "", {}},
      [&value, range](const std::string& text) { return read_value(text, range, value); });
}

template <class T>
void Command::option(const char* name, std::optional<T>& value, const char* meaning, Range<T> range,
                     const char* fallback) {
  add({name, kValueName<T>, meaning, fallback, "", {}},
      [&value, range](const std::string& text) { return read_value(text, range, value.emplace()); });
}

template void Command::option(const char*, int&, const char*, Range<int>);
template void Command::option(const char*, std::int64_t&, const char*, Range<std::int64_t>);
template void Command::option(const char*, std::uint64_t&, const char*, Range<std::uint64_t>);
template void Command::option(const char*, double&, const char*, Range<double>);
template void Command::option(const char*, std::optional<int>&, const char*, Range<int>, const char*);
template void Command::option(const char*, std::optional<std::int64_t>&, const char*, Range<std::int64_t>,
                              const char*);
template void Command::option(const char*, std::optional<std::uint64_t>&, const char*, Range<std::uint64_t>,
                              const char*);
template void Command::option(const char*, std::optional<double>&, const char*, Range<double>, const char*);

void Command::list(const char* name, std::vector<std::string>& values, const char* meaning) {
  OptionInfo info{name, "TEXT", meaning, "", "", {}};
  info.repeated = true;
  add(std::move(info), [&values](const std::string& text) -> std::optional<std::string> {
    if (text.empty()) return "expected a text";
    values.push_back(text);
    return std::nullopt;
  });
}

void Command::choice(const char* name, std::string& value, std::vector<std::string> choices,
                     const char* meaning) {
  OptionInfo info{name, "NAME", meaning, value, "", choices};
  add(std::move(info),
      [&value, choices = std::move(choices)](const std::string& text) -> std::optional<std::string> {
        value = text;
        if (std::find(choices.begin(), choices.end(), text) != choices.end()) return std::nullopt;
        return fmt::format("expected {}", fmt::join(choices, ", "));
      });
}

void Command::checked(const char* name, std::string& value, const char* meaning, Check check) {
  add({name, "TEXT", meaning, value, "", {}}, [&value, check = std::move(check)](const std::string& text) {
    value = text;
    return check(text);
  });
}

void Command::required(const char* name, std::string& value, const char* meaning, Check check) {
  OptionInfo info{name, "TEXT", meaning, "", "", {}};
  info.required = true;
  add(std::move(info),
      [&value, check = std::move(check)](const std::string& text) -> std::optional<std::string> {
        value = text;
        return check ? check(text) : std::nullopt;
      });
}

void Command::size(const char* name, std::uint64_t& value, const char* meaning) {
  add({name, "SIZE", meaning, "", "", {}},
      [&value](const std::string& text) { return read_size(text, value); });
}

void Command::flag(const char* name, bool& value, const char* meaning) {
  app_.add_flag(name, value);
  info_.options.push_back({name, "", meaning, "", group_, {}});
}

void Command::note(const char* text) {
  info_.note = text;
}

void Command::example(const char* command, const char* meaning) {
  info_.examples.push_back({command, meaning});
}

void Command::on_run(std::function<void()> action) {
  app_.callback([choose = choose_, action = std::move(action)] { choose(action); });
}

Parser::Parser(std::string meaning) : app_(std::make_unique<CLI::App>()) {
  table_.meaning = std::move(meaning);
  table_.commands.reserve(kMostCommands);
  app_->require_subcommand(1);
}

Parser::~Parser() = default;

Command Parser::add(const char* name, const char* meaning) {
  table_.commands.push_back({name, meaning, {}, "", {}});
  return {*app_->add_subcommand(name), table_.commands.back(),
          [this](std::function<void()> action) { chosen_ = std::move(action); }};
}

// Returns -1 if there is a command to run.
int Parser::parse(int argc, const char* const* argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (first.empty() || first == "-h" || first == "--help") {
    fmt::print(argc > 1 ? stdout : stderr, "{}", program_help(table_, terminal::width(stdout)));
    return argc > 1 ? 0 : 2;
  }
  if (first == "--version") {
    const char* const version[] = {argv[0], "version"};
    return parse(2, version);
  }
  std::vector<std::string> names;
  for (const CommandInfo& command : table_.commands) names.push_back(command.name);
  const CommandInfo* command = table_.find(first);
  if (command == nullptr) {
    const std::string meant = nearest(first, names);
    throw UsageError(fmt::format(
        "there is no {} '{}'{}", first.starts_with('-') ? "option" : "command", terminal::printable(first),
        meant.empty() ? "; 'sluice help' lists the commands" : fmt::format("; did you mean '{}'?", meant)));
  }
  try {
    app_->parse(argc, argv);
    return -1;
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", command_help(*command, terminal::width(stdout)));
    return 0;
  } catch (const CLI::ExtrasError&) {
    const std::vector<std::string> rest = app_->remaining(true);
    const std::string word = rest.empty() ? "" : rest.front();
    if (!word.starts_with('-'))
      throw UsageError(fmt::format("'{}' is one argument too many", terminal::printable(word)));
    std::vector<std::string> known;
    for (const OptionInfo& option : command->options)
      for (const std::string& name : option.all_names()) known.push_back(name);
    const std::string meant = nearest(word.substr(0, word.find('=')), known);
    throw UsageError(fmt::format("there is no option '{}'{}", terminal::printable(word),
                                 meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant)));
  } catch (const CLI::ParseError& error) {
    throw UsageError(terminal::printable(sentence(error.what())));
  }
}

int Parser::run(int argc, const char* const* argv) {
  const int status = parse(argc, argv);
  if (status >= 0) return status;
  chosen_();
  return 0;
}

void fail_usage(const std::string& needed) {
  throw UsageError("give " + needed);
}

}  // namespace sluice::cli
