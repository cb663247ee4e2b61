#include "sluice/plan.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "backend/make.h"
#include "base/error.h"
#include "checkpoint/checkpoint_binder.h"
#include "checkpoint/random_binder.h"
#include "checkpoint/random_routing.h"
#include "engine/engine_impl.h"
#include "engine/summary.h"
#include "experts/disk_rate.h"
#include "models/geometry.h"

namespace sluice {

namespace {

constexpr std::int64_t kContexts[] = {4096, 32768, 131072, 262144};

std::uint64_t machine_memory() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
}

// A backend's view of the model: its types, chunk and rates, none of its memory.
struct Setting {
  std::string place;
  std::uint64_t budget;
  ops::DType activations;
  state::CacheFormat cache;
  std::int64_t chunk;
  double bytes_per_second;
  bool measured = true;        // it is a place of this machine
  std::filesystem::path file;  // to measure the disk with; empty: none

  bool gpu() const { return place == "GPU"; }
  // Of what experts come over that do not fit; 0: unknown.
  double measure_beyond() const {
    if (gpu()) return measured ? backend::cuda::measure_bus_rate() : 0;
    return file.empty() ? 0 : experts::measure_disk_rate(file);
  }
};

// Experts on disk, or beyond the bus: what every token uses stays, and of each layer's experts as many as
// fit.
void plan_streaming(const models::Model& model, const ModelSummary& summary, std::uint64_t beside,
                    const Setting& setting, PlacePlan& plan) {
  std::uint64_t experts = 0;
  for (const ModelSummary::Part& part : summary.parts)
    if (part.kind == "experts") experts += part.bytes;
  if (experts == 0) return;
  const double one_each =
      static_cast<double>(experts) / static_cast<double>(summary.experts);  // of every layer
  // A GPU has a place for all experts of one layer, for prompts.
  const std::uint64_t prompt = setting.gpu() ? experts / static_cast<std::uint64_t>(summary.layers) : 0;
  const std::uint64_t dense = summary.weight_bytes - experts + beside + prompt;
  const std::int64_t least = engine::least_slots(model.decoder);
  plan.smallest_budget = dense + static_cast<std::uint64_t>(static_cast<double>(least) * one_each);
  if (setting.budget < plan.smallest_budget) return;
  plan.expert_slots = std::min(
      summary.experts, static_cast<std::int64_t>(static_cast<double>(setting.budget - dense) / one_each));
  plan.beyond_bytes_per_second = setting.measure_beyond();
  if (plan.beyond_bytes_per_second == 0) return;
  const auto chosen = static_cast<double>(summary.experts_per_token);
  const auto speed = [&](double hit_rate) {
    const double compute =
        static_cast<double>(summary.bytes_per_token + 2 * summary.state_bytes) / plan.bytes_per_second;
    // Experts that are guessed come while others are computed.
    return 1 / std::max(compute, (1 - hit_rate) * chosen * one_each / plan.beyond_bytes_per_second);
  };
  const std::vector<double> shares = checkpoint::zipf_shares(summary.experts, summary.experts_per_token, 1);
  const double popular = std::accumulate(shares.begin(), shares.begin() + plan.expert_slots, 0.0) / chosen;
  plan.even_tokens_per_second =
      speed(static_cast<double>(plan.expert_slots) / static_cast<double>(summary.experts));
  plan.decode_tokens_per_second = speed(popular);
}

PlacePlan plan_place(const models::Model& model, const Setting& setting, std::int64_t sequences) {
  const layers::Decoder& decoder = model.decoder;
  const auto states = decoder.states();
  const ModelSummary summary = engine::summarize(model, setting.cache);
  PlacePlan plan;
  plan.place = setting.place;
  plan.budget = setting.budget;
  plan.bytes_per_second = setting.bytes_per_second;
  const auto reference = ops::make_backend("reference");
  const state::StatePool pool(*reference, states, 1, 1, setting.cache);
  plan.scratch = decoder.activation_bytes(setting.chunk, pool, setting.activations);
  const auto context_bytes = [&](std::int64_t tokens) -> std::uint64_t {
    return state::StatePool::bytes(states, sequences, tokens, setting.cache);
  };
  const std::uint64_t fixed = summary.weight_bytes + plan.scratch + context_bytes(0);
  const std::uint64_t room = setting.budget > fixed ? setting.budget - fixed : 0;
  const std::uint64_t each = summary.cache_bytes_per_position * static_cast<std::uint64_t>(sequences);
  if (room > 0)
    plan.longest_context =
        each == 0 ? model.max_positions
                  : std::min<std::int64_t>(model.max_positions, static_cast<std::int64_t>(room / each));
  for (const std::int64_t tokens : kContexts)
    if (tokens <= model.max_positions)
      plan.contexts.push_back({tokens, context_bytes(tokens), tokens <= plan.longest_context});
  if (plan.longest_context == 0) plan_streaming(model, summary, fixed - summary.weight_bytes, setting, plan);
  const auto step = static_cast<double>(summary.bytes_per_token + 2 * summary.state_bytes);
  if (plan.longest_context > 0) plan.decode_tokens_per_second = plan.bytes_per_second / step;
  return plan;
}

MemoryPlan plan(const models::Model& model, const PlanOptions& options, const EngineOptions& engine,
                const std::filesystem::path& file) {
  if (options.sequences < 1)
    fail(ErrorKind::input, "a plan is for at least one sequence, not {}", options.sequences);
  MemoryPlan result;
  Engine::Impl settings;  // only its choices of types are used
  settings.options = engine;
  const auto add = [&](std::string_view backend, std::string place, std::uint64_t budget) {
    settings.backend = ops::make_backend(backend, {.threads = engine.threads});
    result.places.push_back(
        plan_place(model,
                   {std::move(place), budget != 0 ? budget : settings.backend->memory_bytes(),
                    settings.activation_type(), settings.cache_format(), settings.prefill_chunk(),
                    settings.backend->measure_rates().read_bytes_per_second, true, file},
                   options.sequences));
  };
  try {
    add("cuda", "GPU", options.vram);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    const ops::DType type = engine.exact ? ops::DType::f32 : ops::DType::bf16;
    if (options.vram != 0)  // a GPU that is somewhere else
      result.places.push_back(plan_place(
          model, {"GPU", options.vram, type, {type, engine.key_bits, engine.value_bits}, 4096, 0, false, {}},
          options.sequences));
  }
  add("cpu", "CPU", options.memory != 0 ? options.memory : machine_memory());
  result.model = engine::summarize(model, settings.cache_format());
  for (const ModelSummary::Part& part : result.model.parts)
    (part.kind == "experts" ? result.experts : result.dense) += part.bytes;
  return result;
}

}  // namespace

MemoryPlan plan_model(const std::filesystem::path& folder, const PlanOptions& options,
                      const EngineOptions& engine) {
  const checkpoint::Config config(folder);
  const checkpoint::QuantizationPlan quantization(config.root(), config.where());
  checkpoint::WeightStore store(std::make_unique<checkpoint::TensorFiles>(folder));
  checkpoint::CheckpointBinder binder(store, quantization);
  return plan(models::build(config, binder), options, engine, store.files().files().back().path());
}

MemoryPlan plan_geometry(std::string_view geometry, int bits, const PlanOptions& options,
                         const EngineOptions& engine) {
  checkpoint::RandomBinder binder(bits, nullptr);
  return plan(
      models::build(checkpoint::Config(models::geometry_config(geometry), std::string(geometry)), binder),
      options, engine, {});
}

}  // namespace sluice
