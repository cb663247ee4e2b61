// The command line's grammar. CLI11 takes longer to compile than all commands together, so parser.cpp alone
// includes it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace CLI {
class App;
}

namespace sluice::cli {

// One command: its options are bound to variables, which hold the defaults and must outlive the parsing.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(app) {}

  // T: std::string, a number, or std::vector<std::string> for what may be given several times. A name without
  // dashes is a positional argument.
  template <class T>
  void option(const char* name, T& value, const char* meaning);
  template <class T>
  void required(const char* name, T& value, const char* meaning);
  // Bytes, given with a unit or without: 24GB.
  void size(const char* name, std::uint64_t& value, const char* meaning);
  void flag(const char* name, bool& value, const char* meaning);
  void footer(const char* text);
  void on_run(std::function<void()> action);

 private:
  CLI::App& app_;
};

class Parser {
 public:
  Parser(const char* description, const char* program);
  ~Parser();

  Command add(const char* name, const char* meaning);
  // Parses and runs the command chosen. Prints help and complaints about the usage; the exit status is 0, or
  // 2 for wrong usage.
  int run(int argc, const char* const* argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

// For a command whose options do not fit together: "what is needed".
[[noreturn]] void fail_usage(const std::string& needed);

}  // namespace sluice::cli
