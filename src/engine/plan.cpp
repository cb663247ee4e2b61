#include "sluice/plan.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/integer_cast.h"
#include "checkpoint/checkpoint_binder.h"
#include "checkpoint/random/random_binder.h"
#include "checkpoint/random/random_routing.h"
#include "engine/forward_pass.h"
#include "engine/settings.h"
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

// A place as a plan sees it: its kind and rates, without memory.
struct Place {
  const ops::Traits& traits;
  engine::Settings settings;
  std::int64_t sequences = 1;
  std::uint64_t budget = 0;
  std::uint64_t limit = 0;          // the budget if the user set one
  bool chunk_is_given = false;      // whether the user set the chunk
  ops::Backend* backend = nullptr;  // null if the place is not on this machine
  std::filesystem::path file;       // to measure the disk with; empty: none

  double bytes_per_second() const {
    return backend != nullptr ? backend->measure_rates(limit / 2).read_bytes_per_second : 0;
  }
  // The rate at which experts that do not fit are copied; 0: unknown.
  double measure_beyond() const {
    if (!traits.host_memory) return backend != nullptr ? backend->measure_bus_rate() : 0;
    return file.empty() ? 0 : experts::measure_disk_rate(file);
  }
};

// Bytes in memory besides weights, contexts and experts.
std::uint64_t scratch_bytes(const models::Model& model, const Place& place) {
  return engine::Workspace::claimed(model.decoder, place.settings, place.settings.prefill_chunk) +
         engine::process_bytes(model, place.traits);
}

// As an engine does: makes prompt passes smaller if nothing else leaves room.
void fit_chunk(const models::Model& model, std::uint64_t beside, Place& place) {
  if (!place.traits.host_memory || place.chunk_is_given) return;
  place.settings.prefill_chunk = engine::fitting_chunk(place.traits.prefill_chunk, [&](std::int64_t chunk) {
    place.settings.prefill_chunk = chunk;
    return beside + scratch_bytes(model, place) <= place.budget;
  });
}

// The tokens per sequence that fit in that many bytes, in whole pages.
std::int64_t longest_context(const models::Model& model, const ModelSummary& summary, const Place& place,
                             std::uint64_t room) {
  const std::uint64_t each = summary.cache_bytes_per_position * place.sequences;
  if (each == 0) return model.max_positions;
  const auto pages = static_cast<std::int64_t>(room / (each * state::kPageRows));
  return std::min<std::int64_t>(model.max_positions, pages * state::kPageRows);
}

// What stays in memory if experts are on disk, or across the bus.
struct Streaming {
  double one_each = 0;  // bytes of one expert of every layer
  std::uint64_t scratch = 0;
  std::uint64_t dense = 0;     // what every token uses, scratch and an empty context
  std::uint64_t smallest = 0;  // with the minimum of experts
  std::int64_t longest_context = 0;
};

Streaming streaming_needs(const models::Model& model, const ModelSummary& summary, std::uint64_t context,
                          Place& place) {
  const std::uint64_t experts = summary.bytes_of(PartKind::experts);
  Streaming needs;
  needs.one_each = to_double(experts) / to_double(summary.experts);
  // A device needs room for all experts of one layer, for prompts.
  const std::uint64_t prompt = place.traits.host_memory ? 0 : experts / summary.layers;
  const std::int64_t least = engine::placement::least_slots(model.decoder);
  const auto least_experts = static_cast<std::uint64_t>(to_double(least) * needs.one_each);
  const std::uint64_t fixed = summary.weight_bytes - experts + context + prompt;
  fit_chunk(model, fixed + least_experts, place);
  needs.scratch = scratch_bytes(model, place);
  needs.dense = fixed + needs.scratch;
  needs.smallest = needs.dense + least_experts;
  if (place.budget >= needs.smallest)
    needs.longest_context = longest_context(model, summary, place, place.budget - needs.smallest);
  return needs;
}

// Keeps as many of each layer's experts as fit.
void plan_streaming(const ModelSummary& summary, const Streaming& needs, const Place& place,
                    PlacePlan& plan) {
  plan.scratch = needs.scratch;
  plan.smallest_budget = needs.smallest;
  plan.longest_context = needs.longest_context;
  for (PlacePlan::Context& context : plan.contexts) context.fits = context.with_experts_elsewhere;
  if (place.budget < needs.smallest) return;
  plan.expert_slots = std::min(
      summary.experts, static_cast<std::int64_t>(to_double(place.budget - needs.dense) / needs.one_each));
  plan.beyond_bytes_per_second = place.measure_beyond();
  if (plan.beyond_bytes_per_second == 0) return;
  const double chosen = summary.experts_per_token;
  const auto speed = [&](double hit_rate) {
    const double compute =
        to_double(summary.bytes_per_token + 2 * summary.state_bytes) / plan.bytes_per_second;
    // Predicted experts are fetched while others are computed.
    return 1 / std::max(compute, (1 - hit_rate) * chosen * needs.one_each / plan.beyond_bytes_per_second);
  };
  const std::vector<double> shares =
      checkpoint::random::zipf_shares(summary.experts, summary.experts_per_token, 1);
  const double popular = std::accumulate(shares.begin(), shares.begin() + plan.expert_slots, 0.0) / chosen;
  plan.even_tokens_per_second = speed(to_double(plan.expert_slots) / to_double(summary.experts));
  plan.decode_tokens_per_second = speed(popular);
}

PlacePlan plan_place(const models::Model& model, Place place) {
  const layers::Decoder& decoder = model.decoder;
  const ModelSummary summary = engine::summarize(model, place.settings.cache);
  PlacePlan plan;
  plan.place = place.traits.place;
  plan.budget = place.budget;
  plan.bytes_per_second = place.bytes_per_second();
  const auto context_bytes = [&](std::int64_t tokens) -> std::uint64_t {
    return engine::ForwardPass::claimed(decoder, place.settings, {place.sequences, tokens});
  };
  fit_chunk(model, summary.weight_bytes + context_bytes(0), place);
  plan.scratch = scratch_bytes(model, place);
  const std::uint64_t fixed = summary.weight_bytes + plan.scratch + context_bytes(0);
  const bool resident = place.budget > fixed;
  if (resident) plan.longest_context = longest_context(model, summary, place, place.budget - fixed);
  Place streamed = place;
  const Streaming needs = summary.bytes_of(PartKind::experts) == 0
                              ? Streaming{}
                              : streaming_needs(model, summary, context_bytes(0), streamed);
  for (const std::int64_t tokens : kContexts)
    if (tokens <= model.max_positions)
      plan.contexts.push_back(
          {tokens, context_bytes(tokens), tokens <= plan.longest_context, tokens <= needs.longest_context});
  if (!resident && summary.bytes_of(PartKind::experts) > 0) plan_streaming(summary, needs, streamed, plan);
  const double step = summary.bytes_per_token + 2 * summary.state_bytes;
  if (resident) plan.decode_tokens_per_second = plan.bytes_per_second / step;
  return plan;
}

// A backend to measure with; null if it does not work on this machine.
std::unique_ptr<ops::Backend> make_if_here(std::string_view name, const EngineOptions& engine) {
  try {
    return ops::make_backend(name, {.threads = engine.threads});
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    return nullptr;
  }
}

MemoryPlan plan(const models::Model& model, const PlanOptions& options, const EngineOptions& engine,
                const std::filesystem::path& file) {
  if (options.sequences < 1)
    fail(ErrorKind::input, "a plan is for at least one sequence, not {}", options.sequences);
  MemoryPlan result;
  std::vector<std::string_view> names = ops::backend_names();
  std::erase_if(names, [](std::string_view name) { return ops::backend_traits(name).place.empty(); });
  // Devices come first, because they are faster.
  std::stable_partition(names.begin(), names.end(),
                        [](std::string_view name) { return !ops::backend_traits(name).host_memory; });
  for (const std::string_view name : names) {
    const ops::Traits& traits = ops::backend_traits(name);
    const std::uint64_t limit = traits.host_memory ? options.memory : options.vram;
    Place place{.traits = traits,
                .settings = engine::settings_for(engine, traits),
                .sequences = options.sequences,
                .budget = limit,
                .limit = limit,
                .chunk_is_given = engine.prefill_chunk > 0,
                .file = file};
    if (limit == 0 && traits.host_memory) place.budget = machine_memory();
    const std::unique_ptr<ops::Backend> backend = make_if_here(name, engine);
    if (backend == nullptr && place.budget == 0) continue;
    place.backend = backend.get();
    if (place.budget == 0) place.budget = backend->memory_bytes();
    result.places.push_back(plan_place(model, place));
    result.model = engine::summarize(model, place.settings.cache);
  }
  result.experts = result.model.bytes_of(PartKind::experts);
  result.dense = result.model.weight_bytes - result.experts;
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
  checkpoint::random::RandomBinder binder(bits, nullptr);
  return plan(
      models::build(checkpoint::Config(models::geometry_config(geometry), std::string(geometry)), binder),
      options, engine, {});
}

}  // namespace sluice
