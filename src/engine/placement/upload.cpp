#include "engine/placement/upload.h"

#include "base/integer_cast.h"
#include "engine/placement/layout.h"
#include "engine/placement/parts.h"

namespace sluice::engine::placement {

namespace {

// Appends a shared expert of the same shape as the experts to them.
void join_shared_expert(layers::Moe& moe, Layout& layout) {
  const layers::Mlp& shared = moe.shared_expert;
  const ops::Weight* stacks[] = {&moe.gate_proj.stack, &moe.up_proj.stack, &moe.down_proj.stack};
  const ops::Weight* parts[] = {&shared.gate_proj, &shared.up_proj, &shared.down_proj};
  if (!moe.gate_proj.stack.present() || !joins_shared_expert(moe)) return;
  auto& joined = moe.experts.emplace<layers::moe::JoinedExperts>();
  layout.join({stacks[0], parts[0]}, joined.gate_proj.stack);
  layout.join({stacks[1], parts[1]}, joined.up_proj.stack);
  layout.join({stacks[2], parts[2]}, joined.down_proj.stack);
}

// Joins products with the same input: fewer, larger launches.
void join_products(layers::Decoder& decoder, Layout& layout, bool experts) {
  for (layers::DecoderLayer& layer : decoder.layers) {
    if (auto* net = std::get_if<layers::GatedDeltaNet>(&layer.mixer))
      layout.join({&net->in_proj_qkv, &net->in_proj_z, &net->in_proj_b, &net->in_proj_a}, net->in_proj);
    if (auto* attention = std::get_if<layers::Attention>(&layer.mixer))
      layout.join({&attention->q_proj, &attention->k_proj, &attention->v_proj}, attention->qkv_proj);
    auto* moe = std::get_if<layers::Moe>(&layer.mlp);
    if (moe == nullptr) continue;
    if (moe->shared_expert_gate.present())
      layout.join({&moe->router.gate, &moe->shared_expert_gate}, moe->gates);
    if (experts) join_shared_expert(*moe, layout);
  }
}

// Allocates rows of choices whose last column is the shared expert, for the layers that joined it.
ops::Buffer place_choices(layers::Decoder& decoder, ops::Backend& backend, std::int64_t tokens) {
  ops::Buffer buffer;
  for (layers::DecoderLayer& layer : decoder.layers) {
    auto* moe = std::get_if<layers::Moe>(&layer.mlp);
    auto* joined = moe != nullptr ? std::get_if<layers::moe::JoinedExperts>(&moe->experts) : nullptr;
    if (joined == nullptr) continue;
    const std::int64_t slots = moe->router.top_k + 1;
    if (buffer.data() == nullptr) {
      const std::vector<std::int32_t> shared(to_size(tokens * slots),
                                             static_cast<std::int32_t>(moe->router.gate.shape()[0]));
      buffer = backend.allocate(shared.size() * sizeof(std::int32_t));
      backend.upload(buffer.data(), shared.data(), shared.size() * sizeof(std::int32_t));
    }
    joined->choices = {buffer.data(), ops::DType::i32, {tokens, slots}};
  }
  return buffer;
}

}  // namespace

bool joins_shared_expert(const layers::Moe& moe) {
  const ops::Weight experts[] = {moe.gate_proj[0], moe.up_proj[0], moe.down_proj[0]};
  const ops::Weight shared[] = {moe.shared_expert.gate_proj, moe.shared_expert.up_proj,
                                moe.shared_expert.down_proj};
  for (int i = 0; i < 3; ++i) {
    if (!shared[i].present() || !same_format(experts[i], shared[i])) return false;
    if (experts[i].values.dim(0) != shared[i].values.dim(0)) return false;
  }
  return true;
}

PlacedModel upload(models::Model& model, ops::Backend& backend, std::int64_t tokens,
                   const std::function<void(std::uint64_t, std::uint64_t)>& progress, bool experts) {
  Layout layout;
  join_products(model.decoder, layout, experts);
  for_each_part(model.decoder, [&](PartKind kind, auto& part, double) {
    if (experts || kind != PartKind::experts) layout.place(part);
  });
  if (model.decoder.rotary != nullptr) {
    model.decoder.rotary->placed = model.decoder.rotary->view();
    layout.place(model.decoder.rotary->placed);
  }
  PlacedModel placed{backend.allocate(layout.bytes()), {}};
  layout.copy(
      static_cast<std::byte*>(placed.weights.data()),
      [&](void* to, const void* from, std::size_t bytes) { backend.upload(to, from, bytes); }, progress);
  placed.choices = place_choices(model.decoder, backend, tokens);
  backend.synchronize();
  return placed;
}

}  // namespace sluice::engine::placement
