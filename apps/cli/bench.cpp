// sluice bench: what this machine reaches, as a fraction of what it could.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "sluice/op_runner.h"

namespace sluice::cli {

namespace {

void run_ops(const OpBenchOptions& options, bool json) {
  auto rows = nlohmann::ordered_json::array();
  const MachinePeak peak = bench_ops(
      options,
      [&](const MachinePeak& measured) {
        if (json) return;
        fmt::print("this machine reads {:.1f} GB/s and computes {:.1f} GFLOP/s (F32)\n\n",
                   measured.read_gigabytes_per_second, measured.gigaflops);
        fmt::print("{:22} {:38} {:>10} {:>8} {:>9} {:>6}\n", "op", "case", "us", "GB/s", "GFLOP/s", "% peak");
      },
      [&](const OpTiming& row) {
        if (json) {
          rows.push_back({{"op", row.op},
                          {"case", row.label},
                          {"us", row.microseconds},
                          {"gb_per_s", row.gigabytes_per_second},
                          {"gflop_per_s", row.gigaflops},
                          {"percent_of_peak", row.percent_of_peak}});
          return;
        }
        fmt::print("{:22} {:38} {:10.1f} {:8.1f} {:9.1f} {:6.1f}\n", row.op, row.label, row.microseconds,
                   row.gigabytes_per_second, row.gigaflops, row.percent_of_peak);
        std::fflush(stdout);
      });
  if (!json) return;
  const nlohmann::ordered_json result{
      {"peak", {{"gb_per_s", peak.read_gigabytes_per_second}, {"gflop_per_s", peak.gigaflops}}},
      {"ops", rows}};
  fmt::print("{}\n", result.dump(2));
}

}  // namespace

void add_bench(CLI::App& app) {
  auto options = std::make_shared<OpBenchOptions>();
  auto json = std::make_shared<bool>(false);
  auto ops = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("bench", "Measure speed as a fraction of this machine's own peak");
  command->add_flag("--ops", *ops, "Time every op of the catalogue");
  command->add_option("--op", options->op, "Only this op");
  command->add_option("--backend", options->backend, "auto, cpu or cuda")->capture_default_str();
  command->add_option("--threads", options->threads, "CPU threads; 0: one a core")->capture_default_str();
  command->add_option("--seconds", options->seconds_per_case, "Time to spend on a case")
      ->capture_default_str();
  command->add_flag("--json", *json, "Machine-readable output");
  command->callback([options, json, ops] {
    if (!*ops) throw CLI::RequiredError("--ops");
    run_ops(*options, *json);
  });
}

}  // namespace sluice::cli
