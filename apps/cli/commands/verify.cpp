// sluice verify: checks the built-in case table of every op on this machine against the reference.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "commands/commands.h"
#include "options/model.h"
#include "sluice/op_runner.h"
#include "sluice/ops/backend.h"
#include "terminal/output.h"

namespace sluice::cli::commands {

namespace {

void run(const VerifyOptions& options, bool json) {
  auto rows = nlohmann::ordered_json::array();
  bool failed = false;
  if (!json) {
    const auto backend = ops::make_backend(
        options.backend, {.threads = options.threads, .exact = options.exact, .isa = options.isa});
    fmt::print("{}: {}\n\n", backend->name(), backend->description());
    fmt::print("{:24} {:>6} {:>12} {:>9}  {}\n", "op", "cases", "worst error", "limit", "result");
  }
  verify_ops(options, [&](const OpVerification& op) {
    failed = failed || op.failed > 0 || op.cases == 0;
    const std::string result = op.failed > 0   ? fmt::format("FAIL ({})", op.failed)
                               : op.cases == 0 ? "NO CASES"
                                               : "pass";
    if (json) {
      rows.push_back({{"op", op.op},
                      {"cases", op.cases},
                      {"failed", op.failed},
                      {"worst_error", op.worst_error},
                      {"limit", op.limit},
                      {"failures", op.failures}});
      return;
    }
    fmt::print("{:24} {:6} {:12.3g} {:9.0e}  {}\n", op.op, op.cases, op.worst_error, op.limit, result);
    for (const std::string& failure : op.failures) fmt::print("    {}\n", failure);
    std::fflush(stdout);
  });
  if (json) terminal::print_json(rows);
  terminal::flush_output();
  if (failed) throw Failed();
}

}  // namespace

void add_verify(Parser& parser) {
  auto options = std::make_shared<VerifyOptions>();
  auto json = std::make_shared<bool>(false);
  auto rounded = std::make_shared<bool>(false);
  Command command = parser.add("verify", "Check every op on this machine against the reference");
  options::add_backend(command, options->backend);
  command.option("--op", options->op, "Only this op");
  options::add_threads(command, options->threads);
  options::add_isa(command, options->isa);
  command.option("--cases", options->cases, "Cases per op, spread over its table; 0: all", {0, 1 << 20});
  command.flag("--rounded", *rounded, "Round activations to integers, as other commands do without --exact");
  command.flag("--json", *json, options::kJsonMeaning);
  command.example("sluice verify --op matmul --rounded", "check one op with the rounding that models use");
  command.on_run([=] {
    options->exact = !*rounded;
    run(*options, *json);
  });
}

}  // namespace sluice::cli::commands
