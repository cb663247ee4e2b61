// The command line: parses arguments, runs one command, reports errors as one sentence on stderr. Exit status
// 1 for an error or a failed check, 2 for wrong usage.
#include <fmt/core.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "commands/commands.h"
#include "options/nodes.h"
#include "sluice/error.h"
#include "terminal/output.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace sluice::cli {

namespace {

void add_commands(Parser& parser) {
  commands::add_run(parser);
  commands::add_chat(parser);
  commands::add_serve(parser);
  commands::add_cache(parser);
  commands::add_list(parser);
  commands::add_pull(parser);
  commands::add_rm(parser);
  commands::add_inspect(parser);
  commands::add_plan(parser);
  commands::add_tokenize(parser);
  commands::add_template(parser);
  commands::add_logits(parser);
  commands::add_perplexity(parser);
  commands::add_convert(parser);
  commands::add_random(parser);
  commands::add_bench(parser);
  commands::add_verify(parser);
  commands::add_op(parser);
  commands::add_help(parser);
  commands::add_version(parser);
}

// One sentence for people and, with --json, the same for programs.
int report(std::string_view kind, std::string_view message, bool json, int status = 1) {
  fmt::print(stderr, "{} {}\n", terminal::styled(terminal::Style::red, "sluice:", stderr),
             terminal::printable(message));
  if (!json) return status;
  try {
    terminal::print_json({{"error", {{"kind", kind}, {"message", message}}}});
    terminal::flush_output();
  } catch (const Error&) {
    // The problem has been reported on stderr already.
  }
  return status;
}

int run(int argc, const char* const* argv) {
  const bool json = std::any_of(argv, argv + argc, [](std::string_view word) { return word == "--json"; });
  Parser parser(
      "sluice runs mixture-of-experts language models, those with linear attention among them, on your own "
      "machine.");
  add_commands(parser);
  try {
    const int status = parser.run(argc, argv);
    terminal::flush_output();
    return status;
  } catch (const options::Followed&) {
    return 0;
  } catch (const Failed&) {
    return 1;
  } catch (const terminal::Interrupted& interrupt) {
    std::fflush(stdout);
    fmt::print(stderr, "sluice: {}\n", interrupt.what());
    terminal::die_of_interrupt();
  } catch (const UsageError& error) {
    options::leave_usage_to_the_leader();
    const CommandInfo* command = argc > 1 ? parser.table().find(argv[1]) : nullptr;
    const std::string help = command != nullptr && command->name != "help"
                                 ? fmt::format("sluice help {}", command->name)
                                 : "sluice help";
    return report("usage", fmt::format("{} (see '{}')", error.what(), help), json, 2);
  } catch (const Error& error) {
    return report(name(error.kind()), error.what(), json);
  } catch (const std::system_error& error) {  // thrown by output
    return report(name(ErrorKind::resource),
                  fmt::format("cannot write the output: {}", error.code().message()), json);
  } catch (const std::bad_alloc&) {
    return report(name(ErrorKind::resource), "out of memory", json);
  } catch (const std::exception& error) {
    return report(name(ErrorKind::internal), error.what(), json);
  }
}

}  // namespace

}  // namespace sluice::cli

int main(int argc, char** argv) {
  namespace terminal = sluice::cli::terminal;
  terminal::guard_standard_streams();
  terminal::guard_against_signals();
  // UTF-8 determines the widths of characters in every locale; the format of numbers is unchanged.
  if (std::setlocale(LC_CTYPE, "C.UTF-8") == nullptr) std::setlocale(LC_CTYPE, "");
  return sluice::cli::run(argc, argv);
}
