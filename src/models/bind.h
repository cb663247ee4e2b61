// Binders that several families share: attention with normalised queries and keys, the mixture of experts,
// the skeleton.
#pragma once

#include "checkpoint/binder.h"
#include "checkpoint/config.h"
#include "layers/decoder.h"

namespace sluice::models {

using checkpoint::Binder;
using checkpoint::Config;
using checkpoint::ParameterKind;

// Norms of Qwen3.5 and Qwen3-Next are zero-centred, those of Qwen3-MoE plain.
layers::RmsNormWeights bind_norm(Binder& binder, const std::string& module, std::int64_t width, double eps,
                                 ParameterKind kind);
// A layer of which only the norms before its two halves are bound.
layers::DecoderLayer bind_layer_norms(Binder& binder, const std::string& layer, std::int64_t hidden,
                                      double eps, ParameterKind kind);
layers::Attention bind_attention(const Config& config, Binder& binder, const std::string& layer, bool gated,
                                 ParameterKind norms);
layers::Mlp bind_mlp(Binder& binder, const std::string& module, std::int64_t hidden,
                     std::int64_t intermediate);
layers::Moe bind_moe(const Config& config, Binder& binder, const std::string& module, bool normalize,
                     bool shared_expert);
// Embedding, final norm and output head.
void bind_ends(const Config& config, Binder& binder, layers::Decoder& decoder, ParameterKind norms);
// Whether a layer has experts: every decoder_sparse_step-th, unless mlp_only_layers names it.
bool is_sparse(const Config& config, std::int64_t layer);
// Throws for unsupported parts of a Qwen checkpoint, and for unread fields that would change the result.
void refuse_unsupported_qwen_fields(const Config& config);

}  // namespace sluice::models
