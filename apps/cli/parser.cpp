#include "parser.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <utility>
#include <vector>

namespace sluice::cli {

template <class T>
void Command::option(const char* name, T& value, const char* meaning) {
  app_.add_option(name, value, meaning)->capture_default_str();
}

// A list has no default worth showing.
template <>
void Command::option(const char* name, std::vector<std::string>& value, const char* meaning) {
  app_.add_option(name, value, meaning);
}

template <class T>
void Command::required(const char* name, T& value, const char* meaning) {
  app_.add_option(name, value, meaning)->required();
}

template void Command::option(const char*, std::string&, const char*);
template void Command::option(const char*, int&, const char*);
template void Command::option(const char*, std::int64_t&, const char*);
template void Command::option(const char*, std::uint64_t&, const char*);
template void Command::option(const char*, double&, const char*);
template void Command::required(const char*, std::string&, const char*);

void Command::size(const char* name, std::uint64_t& value, const char* meaning) {
  app_.add_option(name, value, meaning)->transform(CLI::AsSizeValue(true));
}

void Command::flag(const char* name, bool& value, const char* meaning) {
  app_.add_flag(name, value, meaning);
}

void Command::footer(const char* text) {
  app_.footer(text);
}

void Command::on_run(std::function<void()> action) {
  app_.callback(std::move(action));
}

Parser::Parser(const char* description, const char* program)
    : app_(std::make_unique<CLI::App>(description, program)) {
  app_->require_subcommand(1);
  app_->set_help_all_flag("--help-all", "Print the help of every command");
}

Parser::~Parser() = default;

Command Parser::add(const char* name, const char* meaning) {
  return Command(*app_->add_subcommand(name, meaning));
}

int Parser::run(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app_->exit(error) == 0 ? 0 : 2;
  }
}

void fail_usage(const std::string& needed) {
  throw CLI::RequiredError(needed);
}

}  // namespace sluice::cli
