// Walks over every tensor of a model, by kind; used for counting and uploading.
#pragma once

#include <type_traits>

#include "base/integer_cast.h"
#include "layers/decoder.h"
#include "sluice/engine.h"

namespace sluice::engine::placement {

// Calls f(kind, tensor, active) with each Weight, ExpertWeights or ConstView, absent ones included; `active`
// is the fraction of it that one token uses.
template <class Layer, class F>
void for_each_part_of(Layer& layer,
                      F&& f) requires std::is_same_v<std::remove_const_t<Layer>, layers::Attention> {
  for (auto* weight : {&layer.q_proj, &layer.k_proj, &layer.v_proj, &layer.o_proj})
    f(PartKind::attention, *weight, 1.0);
  for (auto* norm : {&layer.q_norm, &layer.k_norm}) f(PartKind::norms, norm->weight, 1.0);
}

template <class Layer, class F>
void for_each_part_of(Layer& net,
                      F&& f) requires std::is_same_v<std::remove_const_t<Layer>, layers::GatedDeltaNet> {
  for (auto* weight : {&net.in_proj_qkv, &net.in_proj_z, &net.in_proj_b, &net.in_proj_a, &net.out_proj})
    f(PartKind::delta_net, *weight, 1.0);
  for (auto* parameter : {&net.conv1d, &net.A_log, &net.dt_bias, &net.norm.weight})
    f(PartKind::delta_net, *parameter, 1.0);
}

template <class Layer, class F>
void for_each_part_of(Layer& mla, F&& f) requires std::is_same_v<std::remove_const_t<Layer>, layers::Mla> {
  for (auto* weight : {&mla.q_proj, &mla.q_a_proj, &mla.q_b_proj, &mla.kv_a_proj_with_mqa, &mla.kv_b_proj,
                       &mla.embed_q, &mla.unembed_out, &mla.o_proj})
    f(PartKind::latent_attention, *weight, 1.0);
  for (auto* norm : {&mla.q_a_layernorm, &mla.kv_a_layernorm}) f(PartKind::norms, norm->weight, 1.0);
}

template <class Layer, class F>
void for_each_part_of(Layer& mlp, F&& f, PartKind kind = PartKind::feed_forward) requires
    std::is_same_v<std::remove_const_t<Layer>, layers::Mlp> {
  for (auto* weight : {&mlp.gate_proj, &mlp.up_proj, &mlp.down_proj}) f(kind, *weight, 1.0);
}

template <class Layer, class F>
void for_each_part_of(Layer& moe, F&& f) requires std::is_same_v<std::remove_const_t<Layer>, layers::Moe> {
  const double active = to_double(moe.router.top_k) / to_double(moe.router.gate.shape()[0]);
  f(PartKind::router, moe.router.gate, 1.0);
  f(PartKind::router, moe.router.selection_bias, 1.0);
  for (auto* experts : {&moe.gate_proj, &moe.up_proj, &moe.down_proj}) f(PartKind::experts, *experts, active);
  for_each_part_of(moe.shared_expert, f, PartKind::shared_expert);
  f(PartKind::shared_expert, moe.shared_expert_gate, 1.0);
}

// The output head comes last, even if it is the embedding.
template <class Decoder, class F>
void for_each_part(Decoder& decoder,
                   F&& f) requires std::is_same_v<std::remove_const_t<Decoder>, layers::Decoder> {
  f(PartKind::embedding, decoder.embed_tokens, 1.0 / decoder.vocab);
  for (auto& layer : decoder.layers) {
    f(PartKind::norms, layer.input_layernorm.weight, 1.0);
    f(PartKind::norms, layer.post_attention_layernorm.weight, 1.0);
    std::visit([&](auto& mixer) { for_each_part_of(mixer, f); }, layer.mixer);
    std::visit([&](auto& mlp) { for_each_part_of(mlp, f); }, layer.mlp);
  }
  f(PartKind::norms, decoder.norm.weight, 1.0);
  f(PartKind::output_head, decoder.lm_head, 1.0);
}

}  // namespace sluice::engine::placement
