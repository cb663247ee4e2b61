#include "engine/core.h"

#include <numeric>

#include "base/error.h"
#include "base/integer_cast.h"
#include "engine/executor.h"
#include "engine/placement/parts.h"
#include "engine/summary.h"

namespace sluice::engine {

namespace {

// Reads as many experts as there are slots: weights that come from memory need not wait for their first use.
void fill(experts::Cache& cache) {
  for (int layer = 0; layer < cache.store().layers(); ++layer) {
    std::vector<std::int32_t> all(to_size(std::min(cache.slots(), cache.store().layer(layer).experts())));
    std::iota(all.begin(), all.end(), 0);
    experts::Cache::Pass pass(cache, layer, all);
    while (!pass.next().empty()) {
    }
  }
}

// The largest number of slots per layer that fits, or `least`.
template <class F>
std::int64_t most_slots(std::int64_t experts, std::int64_t least, F&& fits) {
  std::int64_t slots = experts;
  while (slots > least && !fits(slots)) --slots;
  return slots;
}

void keep(ops::ExpertWeights& experts, std::int64_t first, std::int64_t count) {
  if (!experts.separate.empty()) {
    experts.separate = experts.separate.subspan(to_size(first), to_size(count));
    return;
  }
  for (ops::ConstView* part : {&experts.stack.values, &experts.stack.scales, &experts.stack.biases})
    if (part->present()) *part = part->rows(first, count);
}

}  // namespace

std::uint64_t process_bytes(const models::Model& model, const ops::Traits& traits) {
  // Measured: the program with its libraries and the rounding of large pages, and the bytes per vocabulary
  // entry while its tokenizer is read.
  constexpr std::uint64_t kProgram = std::uint64_t{27} << 20;
  constexpr std::uint64_t kPerToken = 600;
  constexpr std::uint64_t kDriver = std::uint64_t{64} << 20;
  return traits.host_memory ? kProgram + kPerToken * model.decoder.vocab : kDriver;
}

Core::Core() = default;
Core::~Core() = default;

bool Core::isa_is_of_processor() const {
  return options.share && !options.isa.empty() && options.backend != "auto" &&
         !ops::backend_traits(options.backend).host_memory;
}

void Core::start(const EngineOptions& wanted) {
  check(wanted);
  options = wanted;
  ops::BackendOptions own{.threads = options.threads, .exact = options.exact, .isa = options.isa};
  if (isa_is_of_processor()) own.isa.clear();
  backend = ops::make_backend(options.backend, own);
  settings = settings_for(options, backend->traits());
}

const text::Tokenizer& Core::text() const {
  if (!tokenizer)
    fail(ErrorKind::unsupported, "this checkpoint has no tokenizer.json; give token ids instead of text");
  return *tokenizer;
}

std::uint64_t Core::least_session(std::int64_t context) const {
  if (options.share && !options.share->holds_dense()) return 0;  // sessions are on other nodes
  return Workspace::claimed(model.decoder, settings, settings.prefill_chunk) +
         ForwardPass::claimed(model.decoder, settings, {.slots = 1, .capacity = context});
}

void Core::fit_chunk(std::uint64_t beside) {
  if (options.prefill_chunk > 0 || budget.limit() == 0 || !backend->traits().host_memory) return;
  settings.prefill_chunk = fitting_chunk(backend->traits().prefill_chunk, [&](std::int64_t chunk) {
    settings.prefill_chunk = chunk;
    return beside + least_session(0) <= budget.limit();
  });
}

// Whether everything fits the budget; if so, claims it.
bool Core::claim_all(std::uint64_t weights, std::uint64_t experts) {
  const std::uint64_t all = weights + process_bytes(model, backend->traits());
  const bool unlimited = budget.limit() == 0 && options.expert_slots == 0;
  if (unlimited) return true;
  if (options.expert_slots == 0) fit_chunk(all);
  const bool fits = options.expert_slots == 0 && all + least_session(0) <= budget.limit();
  if (!fits && experts > 0) return false;
  weights_claim = budget.claim(all, least_session(0));
  return true;
}

void Core::stay_within_memory(std::uint64_t dense) {
  if (!store.has_files())
    fail(ErrorKind::unsupported,
         "random weights are in memory already and cannot be limited; write them with 'sluice random' first");
  streamed.cache = placement::make_cache(model, store, options);
  const std::int64_t least = placement::least_slots(model.decoder);
  budget.set_cache(streamed.cache.get(), least, options.expert_slots);
  fit_chunk(dense + streamed.cache->bytes(least));
  weights_claim = budget.claim(dense, least_session(0));
  streamed.dense = placement::copy_dense(model, store.files(), options.progress);
  placement::set_foresight(model.decoder);
}

void Core::stay_within_vram(std::uint64_t dense) {
  experts::parse_miss(options.miss);  // checked before anything is copied
  const auto pinned = [this](std::size_t bytes) { return backend->allocate_pinned(bytes); };
  streamed.cache = placement::make_cache(model, store, options, pinned);
  experts::Cache& cache = *streamed.cache;
  const std::int64_t least = placement::least_slots(model.decoder);
  cache.set_slots(most_slots(summary.experts, least, [&](std::int64_t n) {
    return options.memory == 0 || cache.bytes(n) <= options.memory;
  }));
  if (!store.has_files()) fill(cache);
  const std::uint64_t beside = experts::DeviceTier::bytes(cache.store(), least) + least_session(0);
  weights_claim = budget.claim(dense, options.expert_slots > 0 ? 0 : beside);
  placed = placement::upload(model, *backend, settings.prefill_chunk, options.progress, false);
}

void Core::place_experts(std::uint64_t session) {
  if (backend->traits().host_memory || streamed.cache == nullptr || streamed.tier != nullptr ||
      computes_experts_beside())
    return;
  const std::int64_t least = placement::least_slots(model.decoder);
  const auto bytes = [&](std::int64_t n) { return experts::DeviceTier::bytes(streamed.cache->store(), n); };
  const std::int64_t slots = options.expert_slots > 0
                                 ? std::min(std::max(options.expert_slots, least), summary.experts)
                                 : most_slots(summary.experts, least, [&](std::int64_t n) {
                                     return bytes(n) + session <= budget.left();
                                   });
  tier_claim = budget.claim(bytes(slots), options.expert_slots > 0 ? 0 : session);
  placement::make_tier(model, *backend, streamed, {slots, settings.prefill_chunk, settings.activations},
                       options);
}

void Core::keep_own_layers() {
  if (options.share == nullptr) return;
  layers::Decoder& decoder = model.decoder;
  const auto [first, end] = options.share->divide(*this);
  if (isa_is_of_processor() && !options.share->own_experts())
    fail(ErrorKind::input,
         "the backend '{}' has no instruction set to choose where processors compute no experts",
         options.backend);
  decoder.layers.erase(decoder.layers.begin() + end, decoder.layers.end());
  decoder.layers.erase(decoder.layers.begin(), decoder.layers.begin() + first);
  if (const auto own = options.share->own_experts())
    for (layers::DecoderLayer& layer : decoder.layers)
      if (auto* moe = std::get_if<layers::Moe>(&layer.mlp)) {
        moe->first_expert = own->first;
        for (ops::ExpertWeights* experts : {&moe->gate_proj, &moe->up_proj, &moe->down_proj})
          keep(*experts, own->first, own->end - own->first);
      }
  if (!options.share->holds_dense()) return keep_experts_alone();
  if (first == 0) return;  // also keeps both ends of the model
  decoder.embed_tokens = {};
  decoder.norm = {};
  decoder.lm_head = {};
}

// The router stays, because it determines the number of experts. A device has nothing to compute here.
void Core::keep_experts_alone() {
  if (!backend->traits().host_memory) {
    backend = make_processor();
    settings = settings_for(options, backend->traits());
  }
  placement::for_each_part(model.decoder, [](PartKind kind, auto& part, double) {
    if (kind != PartKind::experts && kind != PartKind::router) part = {};
  });
}

bool Core::computes_experts_beside() const {
  return options.share && options.share->own_experts() && !backend->traits().host_memory;
}

std::unique_ptr<ops::Backend> Core::make_processor() const {
  return ops::make_host_backend({.threads = options.threads, .exact = options.exact, .isa = options.isa});
}

// The device's budget is for everything else.
void Core::stay_beside(std::uint64_t dense, std::uint64_t experts) {
  streamed.cpu = make_processor();
  host_budget.set_limit(options.memory, "--memory", options.share->name());
  if (options.expert_slots > 0 || (options.memory > 0 && experts > options.memory)) {
    streamed.cache = placement::make_cache(model, store, options);
    host_budget.set_cache(streamed.cache.get(), placement::least_slots(model.decoder), options.expert_slots);
    host_budget.claim(0);
  }
  weights_claim = budget.claim(dense, least_session(0));
  placed = placement::upload(model, *backend, settings.prefill_chunk, options.progress, false);
}

void Core::place_weights() {
  const bool host = backend->traits().host_memory;
  budget.set_limit(host ? options.memory : options.vram, host ? "--memory" : "--vram",
                   options.share ? options.share->name() : "");
  const ModelSummary held = summarize(model, settings.cache);
  const std::uint64_t experts = held.bytes_of(PartKind::experts);
  const std::uint64_t dense = held.weight_bytes - experts + process_bytes(model, backend->traits());
  if (computes_experts_beside()) {
    stay_beside(dense, experts);
  } else if (!claim_all(held.weight_bytes, experts)) {
    host ? stay_within_memory(dense) : stay_within_vram(dense);
  } else if (!host) {
    placed = placement::upload(model, *backend, settings.prefill_chunk, options.progress);
    store = {};
  }
  options.progress = {};  // the callable is the caller's and may not outlive loading
  if (options.share) options.share->connect(*this);
}

}  // namespace sluice::engine
