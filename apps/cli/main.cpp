// The command line: parses, runs one command, turns errors into one sentence on stderr. Exit status 1 for an
// error or a failed check, 2 for wrong usage.
#include <fmt/core.h>

#include <csignal>
#include <cstdio>

#include "command.h"
#include "sluice/error.h"

int main(int argc, char** argv) {
  using namespace sluice::cli;
  Parser parser(
      "sluice runs mixture-of-experts language models with linear attention on the machine you have.",
      "sluice");
  add_run(parser);
  add_chat(parser);
  add_inspect(parser);
  add_plan(parser);
  add_logits(parser);
  add_perplexity(parser);
  add_random(parser);
  add_bench(parser);
  add_convert(parser);
  add_op(parser);
  add_verify(parser);
  try {
    return parser.run(argc, argv);
  } catch (const Failed&) {
    return 1;
  } catch (const Interrupted&) {
    fmt::print(stderr, "sluice: interrupted\n");
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);  // so that whoever waits for this program knows
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
  return 1;
}
