// The command line: parses arguments, runs one command, reports errors as one sentence on stderr. Exit status
// 1 for an error or a failed check, 2 for wrong usage.
#include <fmt/core.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "command.h"
#include "options/nodes.h"
#include "sluice/error.h"
#include "terminal/output.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace sluice::cli {

namespace {

void add_commands(Parser& parser) {
  add_run(parser);
  add_chat(parser);
  add_serve(parser);
  add_cache(parser);
  add_list(parser);
  add_pull(parser);
  add_rm(parser);
  add_inspect(parser);
  add_plan(parser);
  add_tokenize(parser);
  add_template(parser);
  add_logits(parser);
  add_perplexity(parser);
  add_convert(parser);
  add_random(parser);
  add_bench(parser);
  add_verify(parser);
  add_op(parser);
  add_help(parser);
  add_version(parser);
}

// One sentence for people and, with --json, the same for programs.
int report(std::string_view kind, std::string_view message, bool json, int status = 1) {
  fmt::print(stderr, "{} {}\n", styled(Style::red, "sluice:", stderr), printable(message));
  if (!json) return status;
  try {
    print_json({{"error", {{"kind", kind}, {"message", message}}}});
    flush_output();
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
    flush_output();
    return status;
  } catch (const Followed&) {
    return 0;
  } catch (const Failed&) {
    return 1;
  } catch (const Interrupted& interrupt) {
    std::fflush(stdout);
    fmt::print(stderr, "sluice: {}\n", interrupt.what());
    die_of_interrupt();
  } catch (const UsageError& error) {
    leave_usage_to_the_leader();
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
  using namespace sluice::cli;
  guard_standard_streams();
  guard_against_signals();
  // UTF-8 determines the widths of characters in every locale; the format of numbers is unchanged.
  if (std::setlocale(LC_CTYPE, "C.UTF-8") == nullptr) std::setlocale(LC_CTYPE, "");
  return run(argc, argv);
}
