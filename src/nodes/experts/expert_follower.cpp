#include "nodes/experts/expert_follower.h"

#include "base/error.h"
#include "base/integer_cast.h"
#include "engine/executor.h"
#include "nodes/experts/expert_question.h"

namespace sluice::nodes::experts {

namespace {

constexpr std::int64_t kRowsPerCall = 256;

}  // namespace

void ExpertFollower::connect(engine::Core& core) {
  for (const layers::DecoderLayer& layer : core.model.decoder.layers)
    if (const auto* moe = std::get_if<layers::Moe>(&layer.mlp)) moes_.push_back(moe);
  Writer ready;
  ready.put(core.streamed.cache != nullptr);
  cluster_->send(head_, Channel::replies, ready.take());
}

std::size_t ExpertFollower::arena_bytes(ops::DType activations) const {
  layers::Arena arena;
  layers::Device planning(arena, activations);
  for (const layers::Moe* moe : moes_) {
    const layers::Scope scope = planning.scope();
    layers::moe::GatheredRows(planning, {}, moe->gate_proj.shape(), kRowsPerCall);
  }
  return arena.peak();
}

void ExpertFollower::follow(engine::Core& core) {
  const std::size_t bytes = arena_bytes(core.settings.activations);
  const engine::placement::Budget::Claim claim = core.budget.claim(bytes);
  layers::Arena arena(core.backend->allocate(bytes));
  for (;;) {
    const Message message = cluster_->receive(head_, Channel::commands);
    Reader reader(message);
    if (reader.get<ExpertCommand>() == ExpertCommand::quit) return;
    cluster_->send(head_, Channel::rows, core.executor->run([&] { return answer(core, arena, reader); }));
  }
}

Message ExpertFollower::answer(engine::Core& core, layers::Arena& arena, Reader& reader) {
  const auto layer = reader.get<int>();
  const auto phase = reader.get<ops::Phase>();
  const auto type = reader.get<ops::DType>();
  std::vector<layers::moe::Choice> choices = reader.get_all<layers::moe::Choice>();
  const std::vector<std::byte> rows = reader.get_all<std::byte>();
  const std::vector<std::int32_t> guessed = reader.get_all<std::int32_t>();
  const layers::Moe& moe = *moes_.at(to_size(layer));
  const ops::Shape shape = moe.gate_proj.shape();
  Message results(choices.size() * to_size(shape[2]) * size_bytes(type));
  layers::Device device(*core.backend, arena, core.settings.activations);
  device.set_phase(phase);
  const layers::Scope scope = device.scope();
  layers::moe::GatheredRows gathered(device, {rows.data(), results.data(), type}, shape, kRowsPerCall);
  gathered.compute(layers::moe::Choices(std::move(choices)),
                   {moe.gate_proj, moe.up_proj, moe.down_proj, core.streamed.cache.get(), layer, guessed});
  return results;
}

}  // namespace sluice::nodes::experts
