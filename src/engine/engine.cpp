#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "backend/make.h"
#include "base/error.h"
#include "base/json.h"
#include "checkpoint/checkpoint_binder.h"
#include "checkpoint/stop_ids.h"
#include "engine/engine_impl.h"
#include "engine/forward_pass.h"
#include "engine/placement/upload.h"
#include "engine/summary.h"
#include "sluice/session.h"

namespace sluice {

namespace {

namespace fs = std::filesystem;

// The program itself, a tokenizer, tables of where experts lie: what is in memory beside weights, caches and
// activations.
constexpr std::uint64_t kProcessBytes = std::uint64_t{64} << 20;

void check_options(const EngineOptions& options) {
  if (options.prefill_chunk < 0 || options.prefill_chunk > (1 << 20))
    fail(ErrorKind::input, "the prefill chunk is {} tokens, allowed is 1 to {}, or 0 for the backend's own",
         options.prefill_chunk, 1 << 20);
  for (const auto& [side, bits] :
       {std::pair{"keys", options.key_bits}, std::pair{"values", options.value_bits}})
    if (!(bits >= 2 && bits <= 6) && bits != 8 && bits != 16)
      fail(ErrorKind::input, "cached {} are to have {} bits, allowed is 2, 3, 4, 5, 6, 8 or 16", side, bits);
  if ((options.key_bits != 16 || options.value_bits != 16) && options.cache == CacheType::f32)
    fail(ErrorKind::input, "a packed cache of {} and {} bits holds no F32 rows", options.key_bits,
         options.value_bits);
}

std::optional<std::string> read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::stringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

void load_text(const fs::path& folder, Engine::Impl& impl) {
  if (const auto json = read_text(folder / "tokenizer.json"))
    impl.tokenizer = text::Tokenizer::parse(*json, (folder / "tokenizer.json").string());
  const auto config = read_text(folder / "tokenizer_config.json");
  const auto jinja = read_text(folder / "chat_template.jinja");
  nlohmann::ordered_json parsed = nlohmann::ordered_json::object();
  if (config) {
    parse_json(*config, (folder / "tokenizer_config.json").string());  // the strict checks
    parsed = nlohmann::ordered_json::parse(*config);
  }
  if (jinja || parsed.contains("chat_template"))
    impl.templates.emplace(parsed, jinja ? std::optional<std::string_view>(*jinja) : std::nullopt);
  const auto token_id = [&](std::string_view token) -> std::optional<int> {
    return impl.tokenizer ? impl.tokenizer->id(token) : std::nullopt;
  };
  for (const int id : checkpoint::stop_ids(folder, token_id)) impl.stop_ids.push_back(id);
}

}  // namespace

void Engine::Impl::start(const EngineOptions& wanted) {
  check_options(wanted);
  options = wanted;
  backend = ops::make_backend(options.backend,
                              {.threads = options.threads, .exact = options.exact, .isa = options.isa});
}

const text::Tokenizer& Engine::Impl::text() const {
  if (!tokenizer)
    fail(ErrorKind::unsupported, "this checkpoint has no tokenizer.json; give token ids instead of text");
  return *tokenizer;
}

std::uint64_t Engine::Impl::least_session(std::int64_t context) const {
  const auto states = model.decoder.states();
  const auto reference = ops::make_backend("reference");
  const state::StatePool pool(*reference, states, 1, 1, cache_format());
  return engine::ForwardPass::bytes(*this, pool, prefill_chunk()) +
         state::StatePool::bytes(states, 1, context, cache_format());
}

// Whether everything fits the budget; if so it is claimed.
bool Engine::Impl::claim_all(std::uint64_t experts) {
  const std::uint64_t all = summary.weight_bytes + kProcessBytes;
  const bool unlimited = budget.limit() == 0 && options.expert_slots == 0;
  if (unlimited) return true;
  const bool fits = options.expert_slots == 0 && all + least_session(0) <= budget.limit();
  if (!fits && experts > 0) return false;
  weights_claim = budget.claim(all, least_session(0));
  return true;
}

void Engine::Impl::stay_within_memory(std::uint64_t dense) {
  if (!store.has_files())
    fail(ErrorKind::unsupported,
         "random weights are in memory already; write them with 'sluice random' first");
  streamed.cache = engine::make_cache(model, store, options);
  budget.set_cache(streamed.cache.get(), engine::least_slots(model.decoder), options.expert_slots);
  weights_claim = budget.claim(dense, least_session(0));
  streamed.dense = engine::copy_dense(model, store.files(), options.progress);
  engine::set_foresight(model.decoder);
}

// Reads all experts that there are slots for: weights that come from memory need not wait for their first
// use.
static void fill(experts::Cache& cache) {
  for (int layer = 0; layer < cache.store().layers(); ++layer) {
    std::vector<std::int32_t> all(
        static_cast<std::size_t>(std::min(cache.slots(), cache.store().layer(layer).experts())));
    std::iota(all.begin(), all.end(), 0);
    experts::Cache::Pass pass(cache, layer, all);
    while (!pass.next().empty()) {
    }
  }
}

// The most slots a layer that fit, or the fewest that do.
template <class F>
static std::int64_t most_slots(std::int64_t experts, std::int64_t least, F&& fits) {
  std::int64_t slots = experts;
  while (slots > least && !fits(slots)) --slots;
  return slots;
}

void Engine::Impl::stay_within_vram(std::uint64_t dense) {
  engine::miss_of(options);
  const auto pinned = [](std::size_t bytes) { return backend::cuda::allocate_pinned(bytes); };
  streamed.cache = engine::make_cache(model, store, options, pinned);
  experts::Cache& cache = *streamed.cache;
  const std::int64_t least = engine::least_slots(model.decoder);
  cache.set_slots(most_slots(summary.experts, least, [&](std::int64_t n) {
    return options.memory == 0 || cache.bytes(n) <= options.memory;
  }));
  if (!store.has_files()) fill(cache);
  const std::uint64_t beside = experts::DeviceTier::bytes(cache.store(), least) + least_session(0);
  weights_claim = budget.claim(dense, options.expert_slots > 0 ? 0 : beside);
  placed = engine::upload(model, *backend, prefill_chunk(), options.progress, false);
}

void Engine::Impl::place_experts(std::uint64_t session) {
  if (backend->host_memory() || streamed.cache == nullptr || streamed.tier != nullptr) return;
  const std::int64_t least = engine::least_slots(model.decoder);
  const auto bytes = [&](std::int64_t n) { return experts::DeviceTier::bytes(streamed.cache->store(), n); };
  const std::int64_t slots = options.expert_slots > 0
                                 ? std::min(std::max(options.expert_slots, least), summary.experts)
                                 : most_slots(summary.experts, least, [&](std::int64_t n) {
                                     return bytes(n) + session <= budget.left();
                                   });
  tier_claim = budget.claim(bytes(slots), options.expert_slots > 0 ? 0 : session);
  engine::make_tier(model, *backend, streamed, slots, prefill_chunk(), activation_type(), options);
}

void Engine::Impl::place_weights() {
  const bool host = backend->host_memory();
  budget.set_limit(host ? options.memory : options.vram, host ? "--memory" : "--vram");
  std::uint64_t experts = 0;
  for (const ModelSummary::Part& part : summary.parts)
    if (part.kind == "experts") experts += part.bytes;
  const std::uint64_t dense = summary.weight_bytes - experts + kProcessBytes;
  if (!claim_all(experts)) {
    host ? stay_within_memory(dense) : stay_within_vram(dense);
  } else if (!host) {
    placed = engine::upload(model, *backend, prefill_chunk(), options.progress);
    store = {};
  }
  options.progress = {};  // the caller's; it may be gone after loading
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

std::shared_ptr<Engine> Engine::load(const fs::path& folder, const EngineOptions& options) {
  if (!fs::is_directory(folder)) fail(ErrorKind::input, "'{}' is no model folder", folder.string());
  auto impl = std::make_unique<Impl>();
  impl->start(options);
  const checkpoint::Config config(folder);
  const checkpoint::QuantizationPlan plan(config.root(), config.where());
  impl->store = checkpoint::WeightStore(std::make_unique<checkpoint::TensorFiles>(folder));
  checkpoint::CheckpointBinder binder(impl->store, plan);
  impl->model = models::build(config, binder);
  if (impl->model.decoder.lm_head.values.data == impl->model.decoder.embed_tokens.values.data)
    impl->model.spare_tensors.emplace_back("lm_head.");
  binder.refuse_unbound(impl->model.spare_tensors);
  load_text(folder, *impl);
  impl->summary = engine::summarize(impl->model, impl->cache_format());
  impl->place_weights();
  return std::shared_ptr<Engine>(new Engine(std::move(impl)));
}

const ModelSummary& Engine::summary() const {
  return impl_->summary;
}
std::string Engine::backend_description() const {
  return fmt::format("{}: {}", impl_->backend->name(), impl_->backend->description());
}

bool Engine::has_tokenizer() const {
  return impl_->tokenizer.has_value();
}

std::vector<std::int32_t> Engine::encode(std::string_view text, bool add_special_tokens) const {
  return impl_->text().encode(text, {.add_special_tokens = add_special_tokens});
}

std::string Engine::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  return impl_->text().decode(ids, skip_special);
}

bool Engine::has_chat_template() const {
  return impl_->templates.has_value();
}

std::string Engine::render_chat(std::string_view messages_json, bool add_generation_prompt,
                                std::string_view variables_json) const {
  if (!impl_->templates)
    fail(ErrorKind::unsupported, "this checkpoint has no chat template; use the raw mode");
  parse_json(messages_json, {"messages", ErrorKind::input});
  parse_json(variables_json, {"template variables", ErrorKind::input});
  text::ChatOptions options;
  options.add_generation_prompt = add_generation_prompt;
  return impl_->templates->render(nlohmann::ordered_json::parse(messages_json), nullptr,
                                  nlohmann::ordered_json::parse(variables_json), options);
}

const std::vector<std::int32_t>& Engine::stop_ids() const {
  return impl_->stop_ids;
}

}  // namespace sluice
