// The command line: parses, runs one command, turns errors into one sentence on stderr. Exit status 1 for an
// error or a failed check, 2 for wrong usage.
#include <fmt/format.h>

#include <cstdio>

#include "command.h"
#include "sluice/error.h"

int main(int argc, char** argv) {
  using namespace sluice::cli;
  CLI::App app(
      "sluice runs mixture-of-experts language models with linear attention on the machine you have.",
      "sluice");
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "Print the help of every command");
  add_run(app);
  add_chat(app);
  add_inspect(app);
  add_plan(app);
  add_logits(app);
  add_perplexity(app);
  add_random(app);
  add_bench(app);
  add_convert(app);
  add_op(app);
  add_verify(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const Failed&) {
    return 1;
  } catch (const sluice::Error& error) {
    fmt::print(stderr, "sluice: {}\n", error.what());
    return 1;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "sluice: out of memory\n");
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "sluice: {}\n", error.what());
    return 1;
  }
  return 0;
}
