// sluice bench: the speed of this machine, absolute and as a fraction of its limits.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "commands/bench/against.h"
#include "commands/bench/bench_csv.h"
#include "commands/commands.h"
#include "options/model.h"
#include "sluice/experts.h"
#include "sluice/model_bench.h"
#include "sluice/op_runner.h"
#include "sluice/ops/backend.h"
#include "terminal/output.h"
#include "terminal/progress.h"

namespace sluice::cli::commands {

namespace {

std::string measured(const MachinePeak& peak) {
  return fmt::format("reads {:.1f} GB/s, {:.0f} GFLOP/s in F32", peak.read_gigabytes_per_second,
                     peak.gigaflops);
}

bench::Figure figure_of(const OpTiming& row) {
  const double bound_by_memory = row.gigabytes_per_second / row.peak.read_gigabytes_per_second;
  const bool memory = bound_by_memory > row.gigaflops / row.peak.gigaflops;
  return {.what = fmt::format("{} {}", row.op, row.label),
          .median = fmt::format("{:.1f}", memory ? row.gigabytes_per_second : row.gigaflops),
          .low = {},
          .high = {},
          .unit = memory ? "GB/s" : "GFLOP/s",
          .fraction = fmt::format("{:.0f}%", row.percent_of_peak),
          .intensity = row.gigabytes_per_second > 0
                           ? fmt::format("{:.3g}", row.gigaflops / row.gigabytes_per_second)
                           : ""};
}

void run_ops(const OpBenchOptions& options, const bench::Output& output) {
  const bool json = output.json;
  std::vector<bench::Figure> figures;
  auto rows = nlohmann::ordered_json::array();
  const MachinePeak peak = bench_ops(
      options,
      [&](const MachinePeak& measured) {
        if (json) return;
        fmt::print("this machine reads {:.1f} GB/s and computes {:.1f} GFLOP/s (F32)\n\n",
                   measured.read_gigabytes_per_second, measured.gigaflops);
        fmt::print("{:22} {:38} {:>10} {:>8} {:>9} {:>13} {:>6}\n", "op", "case", "us", "GB/s", "GFLOP/s",
                   "peaks", "% peak");
      },
      [&](const OpTiming& row) {
        figures.push_back(figure_of(row));
        if (json) {
          rows.push_back({{"op", row.op},
                          {"case", row.label},
                          {"us", row.microseconds},
                          {"gb_per_s", row.gigabytes_per_second},
                          {"gflop_per_s", row.gigaflops},
                          {"peak_gb_per_s", row.peak.read_gigabytes_per_second},
                          {"peak_gflop_per_s", row.peak.gigaflops},
                          {"percent_of_peak", row.percent_of_peak}});
          return;
        }
        const std::string peaks =
            fmt::format("{:.1f}, {:.0f}", row.peak.read_gigabytes_per_second, row.peak.gigaflops);
        fmt::print("{:22} {:38} {:10.1f} {:8.1f} {:9.1f} {:>13} {:6.1f}\n", row.op, row.label,
                   row.microseconds, row.gigabytes_per_second, row.gigaflops, peaks, row.percent_of_peak);
        std::fflush(stdout);
      });
  if (!output.csv.empty()) {
    const auto backend = ops::make_backend(options.backend, {.threads = options.threads, .isa = options.isa});
    bench::append_figures(output.csv, fmt::format("{}, {}", backend->description(), measured(peak)), figures);
  }
  if (!json) return;
  const nlohmann::ordered_json result{
      {"peak", {{"gb_per_s", peak.read_gigabytes_per_second}, {"gflop_per_s", peak.gigaflops}}},
      {"ops", rows}};
  terminal::print_json(result);
}

struct ModelBench {
  ModelBench() { model.model.clear(); }

  options::Model model;
  ModelBenchOptions options;
  std::string geometry;
  int bits = 4;
  std::string against;
  std::string experts_profile;
};

nlohmann::ordered_json to_json(const std::vector<OpProfile>& profile) {
  auto rows = nlohmann::ordered_json::array();
  for (const OpProfile& row : profile)
    rows.push_back({{"op", row.op},
                    {"detail", row.detail},
                    {"calls", row.calls},
                    {"us", row.microseconds},
                    {"bytes", row.bytes},
                    {"percent_of_bound", row.percent_of_bound}});
  return rows;
}

void print_profile(std::string_view of, const std::vector<OpProfile>& profile) {
  if (profile.empty()) return;
  double total = 0;
  fmt::print("\n{:22} {:24} {:>6} {:>9} {:>10} {:>9} {:>7}\n", of, "shape", "calls", "us each", "us in all",
             "MB each", "% bound");
  for (const OpProfile& row : profile) {
    const double all = row.microseconds * static_cast<double>(row.calls);
    total += all;
    fmt::print("{:22} {:24} {:6} {:9.2f} {:10.1f} {:9.3f} {:7.1f}\n", row.op, row.detail, row.calls,
               row.microseconds, all, row.bytes / 1e6, row.percent_of_bound);
  }
  fmt::print("{:22} {:24} {:6} {:9} {:10.1f}\n", "sum", "", "", "", total);
}

// Records which experts a model needs and reports how often each policy would have them in memory.
void run_trace(ModelBench& bench, std::int64_t tokens, bool json) {
  constexpr std::int64_t kAll = std::int64_t{1} << 30;
  if (bench.model.engine.expert_slots == 0 && bench.model.engine.memory == 0)
    bench.model.engine.expert_slots = kAll;
  const auto engine = bench.model.load();
  const std::vector<std::int32_t> prompt =
      engine->has_tokenizer() ? engine->encode("Once upon a time") : std::vector<std::int32_t>{1, 2, 3};
  const PolicyComparison result = compare_policies(engine, prompt, tokens, 1);
  if (!bench.experts_profile.empty()) write_expert_profile(expert_usage(*engine), bench.experts_profile);
  if (json) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::object();
    for (const auto& row : result.rows) rows[row.policy] = row.hit_rates;
    const nlohmann::ordered_json all{{"passes", result.passes}, {"slots", result.slots}, {"hit_rates", rows}};
    return terminal::print_json(all);
  }
  fmt::print(
      "% of experts in memory, by policy and slots per layer of {} ({} tokens after as many to warm up)\n",
      engine->summary().experts, result.passes);
  fmt::print("{:8}", "");
  for (const std::int64_t slots : result.slots) fmt::print("{:8}", slots);
  for (const auto& row : result.rows) {
    fmt::print("\n{:8}", row.policy);
    for (const double rate : row.hit_rates) fmt::print("{:8.1f}", 100 * rate);
  }
  fmt::print("\n");
}

std::vector<bench::Figure> figures_of(const ModelBench& bench, const ModelBenchResult& result) {
  const std::string model =
      bench.geometry.empty() ? bench.model.model : fmt::format("{} at {} bits", bench.geometry, bench.bits);
  const auto figure = [&](const std::string& what, double median, const SpeedRange& range) {
    return bench::Figure{.what = fmt::format("{}, {}", what, model),
                         .median = fmt::format("{:.1f}", median),
                         .low = fmt::format("{:.1f}", range.low),
                         .high = fmt::format("{:.1f}", range.high),
                         .unit = "tok/s"};
  };
  const ModelBenchOptions& options = bench.options;
  std::vector<bench::Figure> figures;
  if (options.prompt > 0)
    figures.push_back(figure(fmt::format("prefill {} at depth {}", options.prompt, options.depth),
                             result.prefill_tokens_per_second, result.prefill_range));
  if (options.generate > 0) {
    figures.push_back(figure(fmt::format("decode at depth {}, {} sequences", options.depth, options.batch),
                             result.decode_tokens_per_second, result.decode_range));
    figures.back().fraction = fmt::format("{:.0f}%", result.percent_of_peak);
  }
  return figures;
}

void run_model(ModelBench& bench, const bench::Output& output) {
  const bool json = output.json;
  if (bench.geometry.empty() == bench.model.model.empty()) fail_usage("one of MODEL, --geometry and --ops");
  const auto engine =
      bench.geometry.empty() ? bench.model.load() : bench.model.random(bench.geometry, bench.bits);
  if (!bench.against.empty())
    return bench::run_against(*engine,
                              {bench.geometry, bench.bits, bench.against, bench.model.engine.threads},
                              bench.options, output);
  const ModelBenchResult r = [&] {
    const terminal::Waiting waiting("measuring");
    return bench_model(*engine, bench.options);
  }();
  if (!bench.experts_profile.empty()) write_expert_profile(expert_usage(*engine), bench.experts_profile);
  if (!output.csv.empty())
    bench::append_figures(
        output.csv,
        fmt::format("{}, reads {:.1f} GB/s", engine->backend_description(), r.peak_gigabytes_per_second),
        figures_of(bench, r));
  if (json) {
    const nlohmann::ordered_json result{{"backend", engine->backend_description()},
                                        {"prompt_tokens", bench.options.prompt},
                                        {"generated_tokens", bench.options.generate},
                                        {"depth", bench.options.depth},
                                        {"batch", bench.options.batch},
                                        {"peak_gb_per_s", r.peak_gigabytes_per_second},
                                        {"prefill_tok_per_s", r.prefill_tokens_per_second},
                                        {"prefill_range", {r.prefill_range.low, r.prefill_range.high}},
                                        {"decode_tok_per_s", r.decode_tokens_per_second},
                                        {"decode_range", {r.decode_range.low, r.decode_range.high}},
                                        {"decode_bytes_per_step", r.decode_bytes_per_step},
                                        {"decode_gb_per_s", r.decode_gigabytes_per_second},
                                        {"percent_of_peak", r.percent_of_peak},
                                        {"profile", to_json(r.profile)},
                                        {"prompt_profile", to_json(r.prompt_profile)}};
    return terminal::print_json(result);
  }
  fmt::print("{}; this machine reads {:.1f} GB/s\n", engine->backend_description(),
             r.peak_gigabytes_per_second);
  if (bench.options.prompt > 0)
    fmt::print("prefill  {:6} tokens at depth {}: {:.1f} tok/s ({:.1f} to {:.1f})\n", bench.options.prompt,
               bench.options.depth, r.prefill_tokens_per_second, r.prefill_range.low, r.prefill_range.high);
  if (bench.options.generate > 0)
    fmt::print(
        "decode   {:6} tokens at depth {}, batch {}: {:.1f} tok/s ({:.1f} to {:.1f}), {:.2f} GB per step, "
        "{:.1f} GB/s, {:.0f}% of peak\n",
        bench.options.generate, bench.options.depth, bench.options.batch, r.decode_tokens_per_second,
        r.decode_range.low, r.decode_range.high, r.decode_bytes_per_step / 1e9, r.decode_gigabytes_per_second,
        r.percent_of_peak);
  const ExpertUsage experts = expert_usage(*engine);
  if (experts.slots > 0)
    fmt::print(
        "experts  {} per layer near the processor, {:.1f}% of {} found there, {} of {} others brought ahead "
        "and "
        "{} in vain, {:.2f} GB moved, {:.2f} s waited\n",
        experts.slots, 100 * experts.hit_rate(), experts.hits + experts.misses, experts.foreseen,
        experts.misses, experts.unused, static_cast<double>(experts.bytes_read) / 1e9, experts.wait_seconds);
  print_profile("op of a prompt's pass", r.prompt_profile);
  print_profile("op of a decode step", r.profile);
}

}  // namespace

void add_bench(Parser& parser) {
  auto options = std::make_shared<OpBenchOptions>();
  auto model = std::make_shared<ModelBench>();
  auto output = std::make_shared<bench::Output>();
  auto ops = std::make_shared<bool>(false);
  auto trace = std::make_shared<std::int64_t>(0);
  Command command = parser.add("bench", "Measure speed as a fraction of this machine's own peak");
  command.option("MODEL", model->model.model, options::kModelMeaning);
  command.option("--geometry", model->geometry,
                 "Random weights in the shape of a known model: qwen3.6-35b-a3b:layers=8,experts=64");
  command.option("--bits", model->bits, "Bits per random weight", {2, 16});
  command.option("-p,--prompt", model->options.prompt, "Prompt tokens to time; 0: skip prompts",
                 {0, kMostTokens});
  command.option("-n,--max-tokens", model->options.generate, "Tokens to decode; 0: skip decoding",
                 {0, kMostTokens});
  command.option("-d,--depth", model->options.depth, "Tokens already in the context", {0, kMostTokens});
  command.option("-b,--batch", model->options.batch, "Sequences decoded together", {1, 1 << 20});
  command.option("-r,--repetitions", model->options.repetitions,
                 "Repetitions, of which the median is reported", {1, 1 << 20});
  command.option("--against", model->against,

                 "Also run llama-bench=PATH (with -b: llama-batched-bench=PATH) in turns on the same "
                 "geometry and bits (3, 4 or 6), and print the ratios");
  command.flag("--profile", model->options.profile,
               "Also time each op of a prompt pass (-p) and of a decode step (-n)");
  options::add_routing(command, model->model.routing);
  command.option("--trace", *trace,
                 "Instead, generate this many tokens and compare the policies for keeping experts in memory",
                 {0, kMostTokens});
  command.option("--experts-profile", model->experts_profile, options::kProfileMeaning);
  command.flag("--ops", *ops, "Instead, time every op of the catalogue");
  command.option("--op", options->op, "With --ops: only this op");
  command.option("--seconds", options->seconds_per_case, "With --ops: seconds per case", {0, 3600});
  command.flag("--json", output->json, options::kJsonMeaning);
  command.option("--csv", output->csv,
                 "Also append the figures to this file, in the format of bench/results");
  options::add_engine(command, model->model);
  command.example("sluice bench delta-story", "benchmark the bundled model");
  command.example("sluice bench --geometry qwen3.6-35b-a3b:layers=8 -p 512 -n 32",
                  "benchmark part of a large model, with random weights");
  command.on_run([=] {
    if (!output->csv.empty())
      bench::append_figures(output->csv, "", {});  // fails before anything is measured
    if (*trace > 0) return run_trace(*model, *trace, output->json);
    if (!*ops) return run_model(*model, *output);
    options->backend = model->model.engine.backend;
    options->threads = model->model.engine.threads;
    options->exact = model->model.engine.exact;
    options->isa = model->model.engine.isa;
    options->memory = model->model.engine.memory;
    run_ops(*options, *output);
  });
}

}  // namespace sluice::cli::commands
