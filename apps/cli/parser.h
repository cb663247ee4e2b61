// The command line's grammar. CLI11 takes longer to compile than all commands together, so only parser.cpp
// includes it.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command_table.h"
#include "values.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sluice::cli {

// One command: its options are bound to variables, which hold the defaults and must outlive parsing. All
// values are checked before anything runs.
class Command {
 public:
  Command(CLI::App& app, CommandInfo& info, std::function<void(std::function<void()>)> choose);

  // The options that follow are listed under this heading in the help.
  void group(const char* heading) { group_ = heading; }

  // A name without dashes is a positional argument.
  void option(const char* name, std::string& value, const char* meaning);
  void option(const char* name, std::optional<std::string>& value, const char* meaning);
  template <class T>  // a number
  void option(const char* name, T& value, const char* meaning, Range<T> range = {});
  // Stays empty if not given; `fallback` describes the default in the help.
  template <class T>
  void option(const char* name, std::optional<T>& value, const char* meaning, Range<T> range = {},
              const char* fallback = "");
  // May be given several times, with one non-empty value each.
  void list(const char* name, std::vector<std::string>& values, const char* meaning);
  void choice(const char* name, std::string& value, std::vector<std::string> choices, const char* meaning);
  // Returns an error, or nothing.
  using Check = std::function<std::optional<std::string>(const std::string&)>;
  void checked(const char* name, std::string& value, const char* meaning, Check check);
  void required(const char* name, std::string& value, const char* meaning, Check check = nullptr);
  // Bytes, with or without a unit: 24GB.
  void size(const char* name, std::uint64_t& value, const char* meaning);
  void flag(const char* name, bool& value, const char* meaning);

  void note(const char* text);
  void example(const char* command, const char* meaning);
  void on_run(std::function<void()> action);

 private:
  using Read = std::function<std::optional<std::string>(const std::string& text)>;

  // Adds the option to the table and calls `read` with each value.
  CLI::Option* add(OptionInfo info, Read read);

  CLI::App& app_;
  CommandInfo& info_;
  std::function<void(std::function<void()>)> choose_;
  const char* group_ = "Options";
};

// The command line is invalid.
class UsageError : public std::exception {
 public:
  explicit UsageError(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

// A command ran but found something wrong; sets the exit status.
class Failed : public std::exception {};

class Parser {
 public:
  explicit Parser(std::string meaning);
  ~Parser();

  Command add(const char* name, const char* meaning);
  // Parses, and runs the chosen command or prints help. Throws UsageError before anything runs.
  int run(int argc, const char* const* argv);
  const ProgramInfo& table() const { return table_; }

 private:
  int parse(int argc, const char* const* argv);

  std::unique_ptr<CLI::App> app_;
  ProgramInfo table_;
  std::function<void()> chosen_;
};

// For options that cannot be combined: the message is "give " and what is needed.
[[noreturn]] void fail_usage(const std::string& needed);

}  // namespace sluice::cli
