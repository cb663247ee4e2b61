// sluice plan: where a model fits and its maximum speed there, before anything is allocated.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands/commands.h"
#include "options/input.h"
#include "options/model.h"
#include "options/nodes.h"
#include "sluice/nodes_plan.h"
#include "sluice/plan.h"
#include "terminal/output.h"
#include "terminal/progress.h"

namespace sluice::cli::commands {

namespace {

struct PlanCommand {
  PlanCommand() { model.model.clear(); }

  options::Model model;
  std::string geometry;
  int bits = 4;
  PlanOptions options;
  bool json = false;
};

double gigabytes(std::uint64_t bytes) {
  return static_cast<double>(bytes) / 1e9;
}

struct SeveralMachines {
  NodesSpec spec;
  bool measured = false;  // otherwise a file describes them
  NodesPlan plan;
};
// Absent: a single machine.
using MaybeNodes = std::optional<SeveralMachines>;

// In the format of the file that --nodes takes.
nlohmann::ordered_json spec_json(const NodesSpec& spec) {
  auto nodes = nlohmann::ordered_json::array();
  for (const NodeSpec& node : spec.nodes) {
    nlohmann::ordered_json& own = nodes.emplace_back();
    own = {{"name", node.name},
           {"memory_gb", node.memory / 1e9},
           {"gb_per_s", node.bytes_per_second / 1e9},
           {"disk_gb_per_s", node.disk_bytes_per_second / 1e9}};
    if (!node.has_gpu()) continue;
    own["gpu_memory_gb"] = node.gpu_memory / 1e9;
    own["gpu_gb_per_s"] = node.gpu_bytes_per_second / 1e9;
  }
  return {{"nodes", nodes},
          {"network",
           {{"gbit_per_s", spec.network.bytes_per_second * 8 / 1e9},
            {"round_trip_us", spec.network.round_trip * 1e6}}}};
}

nlohmann::ordered_json nodes_json(const SeveralMachines& machines) {
  const NodesPlan& plan = machines.plan;
  auto layouts = nlohmann::ordered_json::array();
  for (const NodesPlan::Layout& layout : plan.layouts)
    layouts.push_back({{"layout", layout.name},
                       {"nodes", layout.nodes},
                       {"fits", layout.fits},
                       {"with_gpus", layout.with_gpus},
                       {"network_ms", layout.network_seconds * 1e3},
                       {"decode_tok_per_s", layout.tokens_per_second}});
  auto help = nlohmann::ordered_json::array();
  for (const NodesPlan::Help& one : plan.help)
    help.push_back({{"what", one.what}, {"decode_tok_per_s", one.tokens_per_second}});
  nlohmann::ordered_json json{{"layouts", layouts}, {"help", help}};
  if (machines.measured) json["measured"] = spec_json(machines.spec);
  return json;
}

void print_measured(const NodesSpec& spec) {
  fmt::print("\nmeasured\n");
  for (const NodeSpec& node : spec.nodes) {
    const std::string disk = node.disk_bytes_per_second > 0
                                 ? fmt::format(", {:.2f} GB/s from disk", node.disk_bytes_per_second / 1e9)
                                 : "";
    const std::string gpu = node.has_gpu()
                                ? fmt::format("; GPU {:.2f} GB, {:.0f} GB/s", node.gpu_memory / 1e9,
                                              node.gpu_bytes_per_second / 1e9)
                                : "";
    fmt::print("  {:18}{:8.2f} GB for weights, {:.1f} GB/s from memory{}{}\n", node.name, node.memory / 1e9,
               node.bytes_per_second / 1e9, disk, gpu);
  }
  fmt::print("  {:18}{:8.2f} Gb/s, {:.0f} us there and back\n", "network",
             spec.network.bytes_per_second * 8 / 1e9, spec.network.round_trip * 1e6);
}

void print_nodes(const SeveralMachines& machines) {
  if (machines.measured) print_measured(machines.spec);
  const NodesPlan& plan = machines.plan;
  fmt::print("\nall machines together\n");
  const std::vector<NodeSpec>& nodes = machines.spec.nodes;
  const bool any_gpu =
      std::any_of(nodes.begin(), nodes.end(), [](const auto& node) { return node.has_gpu(); });
  for (const NodesPlan::Layout& layout : plan.layouts)
    fmt::print("  {:8}{:8.1f} tok/s at most, {:.1f} ms per token of the network's; --nodes {}{}{}\n",
               layout.name, layout.tokens_per_second, layout.network_seconds * 1e3, layout.nodes,
               any_gpu && !layout.with_gpus ? " --backend cpu" : "", layout.fits ? "" : "  does not fit");
  for (const NodesPlan::Help& help : plan.help)
    fmt::print("  with {}: {:.1f} tok/s\n", help.what, help.tokens_per_second);
}

void print_plan_json(const MemoryPlan& plan, const MaybeNodes& nodes) {
  nlohmann::ordered_json json{{"weight_bytes", plan.model.weight_bytes},
                              {"dense_bytes", plan.dense},
                              {"expert_bytes", plan.experts},
                              {"bytes_per_token", plan.model.bytes_per_token}};
  json["places"] = nlohmann::ordered_json::array();
  for (const PlacePlan& place : plan.places) {
    auto contexts = nlohmann::ordered_json::array();
    for (const auto& context : place.contexts)
      contexts.push_back({{"tokens", context.tokens},
                          {"bytes", context.bytes},
                          {"fits", context.fits},
                          {"with_experts_elsewhere", context.with_experts_elsewhere}});
    json["places"].push_back({{"place", place.place},
                              {"budget_bytes", place.budget},
                              {"scratch_bytes", place.scratch},
                              {"longest_context", place.longest_context},
                              {"expert_slots", place.expert_slots},
                              {"smallest_budget_bytes", place.smallest_budget},
                              {"beyond_gb_per_s", place.beyond_bytes_per_second / 1e9},
                              {"even_tok_per_s", place.even_tokens_per_second},
                              {"gb_per_s", place.bytes_per_second / 1e9},
                              {"decode_tok_per_s", place.decode_tokens_per_second},
                              {"contexts", contexts}});
  }
  if (nodes) json["nodes"] = nodes_json(*nodes);
  terminal::print_json(json);
}

// The remark beside a context in the text output.
std::string remark(const PlacePlan& place, const PlacePlan::Context& context, const char* elsewhere) {
  if (context.fits) return {};
  if (place.longest_context > 0 && context.with_experts_elsewhere)
    return fmt::format("  with some experts {}", elsewhere);
  return "  does not fit";
}

void print(const PlacePlan& place) {
  const char* elsewhere = place.place == "GPU" ? "in RAM" : "on disk";
  fmt::print("\n{} with {:.2f} GB\n", place.place, gigabytes(place.budget));
  fmt::print("  scratch           {:8.2f} GB\n", gigabytes(place.scratch));
  for (const auto& context : place.contexts)
    fmt::print("  context {:9} {:8.2f} GB{}\n", context.tokens, gigabytes(context.bytes),
               remark(place, context, elsewhere));
  if (place.longest_context > 0) fmt::print("  longest context   {:8} tokens\n", place.longest_context);
  if (place.expert_slots > 0)
    fmt::print("  experts           {:8} per layer in memory with an empty context, the others {}\n",
               place.expert_slots, elsewhere);
  else if (place.longest_context == 0 && place.smallest_budget > 0)
    fmt::print("  the weights do not fit; with experts {} {:.2f} GB would do\n", elsewhere,
               std::ceil(gigabytes(place.smallest_budget) * 100) / 100);
  else if (place.longest_context == 0)
    fmt::print("  the weights do not fit\n");
  if (place.beyond_bytes_per_second > 0)
    fmt::print(
        "  decode            {:8.1f} tok/s at most if few experts are chosen often (Zipf's law), {:.1f} if "
        "all are "
        "equally, at the {:.2f} GB/s of the {} and {:.1f} GB/s of the memory measured here\n",
        place.decode_tokens_per_second, place.even_tokens_per_second, place.beyond_bytes_per_second / 1e9,
        place.place == "GPU" ? "bus" : "disk", place.bytes_per_second / 1e9);
  else if (place.decode_tokens_per_second > 0)
    fmt::print("  decode            {:8.1f} tok/s at most, at the {:.1f} GB/s measured here\n",
               place.decode_tokens_per_second, place.bytes_per_second / 1e9);
}

MemoryPlan make_plan(PlanCommand& command) {
  command.model.resolve();
  command.options.memory = command.model.engine.memory;
  command.options.vram = command.model.engine.vram;
  const terminal::Waiting waiting("measuring this machine");
  return command.geometry.empty()
             ? plan_model(command.model.folder(), command.options, command.model.engine)
             : plan_geometry(command.geometry, command.bits, command.options, command.model.engine);
}

// A file to measure a disk with; empty if there is none.
std::filesystem::path largest_file(const std::filesystem::path& folder) {
  std::filesystem::path largest;
  std::uintmax_t most = 0;
  if (!std::filesystem::is_directory(folder)) return largest;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_regular_file() && entry.file_size() > most) {
      most = entry.file_size();
      largest = entry.path();
    }
  return largest;
}

// "auto": those that mpirun started; otherwise a file describes them.
MaybeNodes describe_nodes(PlanCommand& command) {
  const std::string& nodes = command.model.nodes;
  if (nodes.empty()) return {};
  if (nodes != "auto") return SeveralMachines{parse_nodes(options::read_input(nodes), nodes), false, {}};
  const auto file = [&] {
    command.model.resolve();
    return command.geometry.empty() ? largest_file(command.model.folder()) : std::filesystem::path();
  };
  return SeveralMachines{options::measure_nodes(command.model.engine, file), true, {}};
}

void run(PlanCommand& command) {
  if (command.geometry.empty() == command.model.model.empty()) fail_usage("one of MODEL and --geometry");
  MaybeNodes nodes = describe_nodes(command);
  const MemoryPlan plan = make_plan(command);
  if (nodes) nodes->plan = plan_nodes(plan.model, nodes->spec);
  if (command.json) return print_plan_json(plan, nodes);
  fmt::print("weights             {:8.2f} GB: {:.2f} GB of them experts, {} of {} per token\n",
             gigabytes(plan.model.weight_bytes), gigabytes(plan.experts), plan.model.experts_per_token,
             plan.model.experts);
  fmt::print("read per token      {:8.2f} GB\n", gigabytes(plan.model.bytes_per_token));
  for (const PlacePlan& place : plan.places) print(place);
  if (nodes) print_nodes(*nodes);
}

}  // namespace

void add_plan(Parser& parser) {
  auto plan = std::make_shared<PlanCommand>();
  Command command =
      parser.add("plan", "Show where a model fits, with how long a context, and its speed limit");
  command.option("MODEL", plan->model.model, options::kModelMeaning);
  command.option("--geometry", plan->geometry,
                 "The shape of a known model, instead of a checkpoint: qwen3.6-35b-a3b");
  command.option("--bits", plan->bits, "Bits per weight of --geometry", {2, 16});
  command.option("-b,--batch", plan->options.sequences, "Number of sequences at once", {1, 1 << 20});
  command.flag("--json", plan->json, options::kJsonMeaning);
  options::add_engine(command, plan->model);
  command.example("sluice plan --geometry qwen3.6-35b-a3b --vram 24GB",
                  "find out whether a model fits a GPU with 24 GB");
  command.example(
      "sluice plan --geometry qwen3.6-35b-a3b --nodes machines.json",
      "estimate how fast several machines are together, as described by a file (docs/cluster.md)");
  command.example("mpirun --host anna,bert --bind-to none sluice plan MODEL --nodes auto",
                  "the same for the machines at hand, which are measured first");
  command.on_run([plan] { run(*plan); });
}

}  // namespace sluice::cli::commands
