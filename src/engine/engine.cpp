#include <ctime>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/text_file.h"
#include "base/json.h"
#include "checkpoint/checkpoint_binder.h"
#include "checkpoint/stop_ids.h"
#include "engine/executor.h"
#include "engine/summary.h"
#include "jinja/json.h"
#include "sluice/session.h"
#include "sluice/token_bytes.h"

namespace sluice {

namespace {

namespace fs = std::filesystem;

void load_text(const fs::path& folder, engine::Core& core) {
  if (const auto json = files::read_text_file_if_present(folder / "tokenizer.json"))
    core.tokenizer = text::Tokenizer::parse(*json, (folder / "tokenizer.json").string());
  const auto config = files::read_text_file_if_present(folder / "tokenizer_config.json");
  const auto jinja = files::read_text_file_if_present(folder / "chat_template.jinja");
  nlohmann::ordered_json parsed = nlohmann::ordered_json::object();
  if (config) {
    parse_json(*config, (folder / "tokenizer_config.json").string());  // strict checks
    parsed = nlohmann::ordered_json::parse(*config);
  }
  if (jinja || parsed.contains("chat_template"))
    core.templates.emplace(parsed, jinja ? std::optional<std::string_view>(*jinja) : std::nullopt);
  const auto token_id = [&](std::string_view token) -> std::optional<int> {
    if (!core.tokenizer)
      fail(ErrorKind::checkpoint,
           "'{}' lacks tokenizer.json, though tokenizer_config.json names the eos_token {}", folder.string(),
           quote(token));
    return core.tokenizer->id(token);
  };
  for (const int id : checkpoint::stop_ids(folder, token_id)) core.stop_ids.push_back(id);
}

}  // namespace

Engine::Engine(std::unique_ptr<engine::Core> core) : core_(std::move(core)) {
  core_->executor = std::make_unique<engine::Executor>(*core_);
}
Engine::~Engine() = default;

std::shared_ptr<Engine> Engine::load(const fs::path& folder, const EngineOptions& options) {
  if (!fs::is_directory(folder)) fail(ErrorKind::input, "'{}' is not a model folder", folder.string());
  auto core = std::make_unique<engine::Core>();
  core->start(options);
  const checkpoint::Config config(folder);
  const checkpoint::QuantizationPlan plan(config.root(), config.where());
  core->store = checkpoint::WeightStore(std::make_unique<checkpoint::TensorFiles>(folder));
  checkpoint::CheckpointBinder binder(core->store, plan);
  core->model = models::build(config, binder);
  if (core->model.decoder.tied) core->model.spare_tensors.emplace_back("lm_head.");
  binder.refuse_unbound(core->model.spare_tensors);
  load_text(folder, *core);
  core->summary = engine::summarize(core->model, core->settings.cache);
  core->keep_own_layers();
  core->place_weights();
  return std::shared_ptr<Engine>(new Engine(std::move(core)));
}

engine::Core& engine::core(Engine& engine) {
  return *engine.core_;
}
const engine::Core& engine::core(const Engine& engine) {
  return *engine.core_;
}

const ModelSummary& Engine::summary() const {
  return core_->summary;
}
std::string Engine::backend_description() const {
  return fmt::format("{}: {}", core_->backend->name(), core_->backend->description());
}

bool Engine::has_tokenizer() const {
  return core_->tokenizer.has_value();
}

std::vector<std::int32_t> Engine::encode(std::string_view text, bool add_special_tokens) const {
  return core_->text().encode(text, {.add_special_tokens = add_special_tokens});
}

std::string Engine::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  return core_->text().decode(ids, skip_special);
}

std::string token_bytes(const Engine& engine, std::int32_t id) {
  return std::string(engine::core(engine).text().bytes(id));
}

bool Engine::has_chat_template() const {
  return core_->templates.has_value();
}

std::string Engine::render_chat(std::string_view messages_json, bool add_generation_prompt,
                                std::string_view variables_json) const {
  if (!core_->templates)
    fail(ErrorKind::unsupported, "this checkpoint has no chat template; use the raw mode");
  parse_json(messages_json, {"messages", ErrorKind::input});
  parse_json(variables_json, {"template variables", ErrorKind::input});
  text::ChatOptions options;
  options.add_generation_prompt = add_generation_prompt;
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  if (localtime_r(&now, &local) != nullptr) options.now = local;
  auto messages = jinja::parse_document(messages_json);
  auto variables = jinja::parse_document(variables_json);
  if (const auto inner = messages.is_object() ? messages.find("messages") : messages.end();
      inner != messages.end()) {
    nlohmann::ordered_json found = std::move(*inner);
    messages.erase(inner);
    variables.update(messages);
    messages = std::move(found);
  }
  nlohmann::ordered_json tools;
  if (const auto given = variables.find("tools"); given != variables.end()) tools = *given;
  return core_->templates->render(messages, tools, variables, options);
}

const std::vector<std::int32_t>& Engine::stop_ids() const {
  return core_->stop_ids;
}

}  // namespace sluice
