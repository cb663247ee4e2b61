// sluice inspect: the parts of a checkpoint and what running it requires.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands/commands.h"
#include "options/model.h"
#include "terminal/output.h"
#include "terminal/terminal.h"

namespace sluice::cli::commands {

namespace {

// With the largest unit of which there is one: at most three digits before the point.
std::string scaled(double n, const std::array<const char*, 5>& units) {
  std::size_t unit = 0;
  while (n >= 1000 && unit + 1 < units.size()) n /= 1000, ++unit;
  return fmt::format("{:.{}f}{}", n, unit == 0 ? 0 : 2, units[unit]);
}

template <class T>
std::string bytes(T n) {
  return scaled(static_cast<double>(n), {" B", " KB", " MB", " GB", " TB"});
}

template <class T>
std::string count(T n) {
  return scaled(static_cast<double>(n), {"", " K", " M", " B", " T"});
}

void print_summary(const ModelSummary& m) {
  nlohmann::ordered_json json{{"architecture", m.architecture},
                              {"layers", m.layers},
                              {"linear_layers", m.linear_layers},
                              {"hidden", m.hidden},
                              {"vocab", m.vocab},
                              {"max_positions", m.max_positions},
                              {"experts", m.experts},
                              {"experts_per_token", m.experts_per_token},
                              {"parameters", m.parameters},
                              {"active_parameters", m.active_parameters},
                              {"weight_bytes", m.weight_bytes},
                              {"bytes_per_token", m.bytes_per_token},
                              {"cache_bytes_per_position", m.cache_bytes_per_position},
                              {"state_bytes", m.state_bytes},
                              {"formats", m.formats}};
  json["parts"] = nlohmann::ordered_json::array();
  for (const auto& part : m.parts)
    json["parts"].push_back(
        {{"kind", name(part.kind)}, {"parameters", part.parameters}, {"bytes", part.bytes}});
  terminal::print_json(json);
}

void run(options::Model& model, bool json) {
  model.engine.backend = "cpu";  // maps the files without copying
  const auto engine = model.load();
  const ModelSummary& m = engine->summary();
  if (json) return print_summary(m);
  fmt::print("architecture      {}\n", terminal::printable(m.architecture));
  fmt::print("layers            {} ({} linear attention), hidden {}, vocabulary {}\n", m.layers,
             m.linear_layers, m.hidden, m.vocab);
  if (m.experts > 0)
    fmt::print("experts           {} per layer, {} per token\n", m.experts, m.experts_per_token);
  fmt::print("parameters        {}, {} active per token\n", count(m.parameters), count(m.active_parameters));
  fmt::print("weights           {}, {} read per token\n", bytes(m.weight_bytes), bytes(m.bytes_per_token));
  fmt::print("formats           {}\n", terminal::printable(fmt::format("{}", fmt::join(m.formats, ", "))));
  for (const auto& part : m.parts)
    fmt::print("  {:18} {:>10} parameters {:>10}\n", name(part.kind), count(part.parameters),
               bytes(part.bytes));
  fmt::print("context           up to {} tokens: {} + {} per token\n", m.max_positions, bytes(m.state_bytes),
             bytes(m.cache_bytes_per_position));
  for (const std::int64_t length : {4096, 32768, 262144})
    if (length <= m.max_positions)
      fmt::print("  {:>7} tokens    {:>10}\n", length, bytes(engine->session_bytes(length)));
}

}  // namespace

void add_inspect(Parser& parser) {
  auto model = std::make_shared<options::Model>();
  auto json = std::make_shared<bool>(false);
  Command command = parser.add("inspect", "Show what a checkpoint contains and how much memory it needs");
  command.required("MODEL", model->model, options::kModelMeaning);
  options::add_cache(command, model->kv);
  command.flag("--json", *json, options::kJsonMeaning);
  command.example("sluice inspect delta-story", "show the bundled model");
  command.on_run([model, json] { run(*model, *json); });
}

}  // namespace sluice::cli::commands
