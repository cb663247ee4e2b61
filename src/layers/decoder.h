// The skeleton of all models: embedding, layers of mixer and feed-forward around a residual, final norm,
// output head.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "layers/attention.h"
#include "layers/gated_delta_net.h"
#include "layers/mla.h"
#include "layers/moe.h"

namespace sluice::layers {

struct DecoderLayer {
  RmsNormWeights input_layernorm;  // [hidden]
  std::variant<Attention, GatedDeltaNet, Mla> mixer;
  RmsNormWeights post_attention_layernorm;  // [hidden]
  std::variant<Mlp, Moe> mlp;

  void forward(Device& dev, const Pass& pass, const ops::View& x, const state::LayerState& state) const;
};

struct Decoder {
  std::int64_t hidden = 0;
  std::int64_t vocab = 0;
  ops::Weight embed_tokens;  // [vocab, hidden]
  std::vector<DecoderLayer> layers;
  RmsNormWeights norm;  // [hidden]
  ops::Weight lm_head;  // [vocab, hidden]
  bool tied = false;    // lm_head is the embedding
  std::unique_ptr<RotaryTable> rotary;
  // If other nodes hold layers of the model: writes rows to x instead of the embedding, takes the
  // rows after the last layer here, and writes to x the rows whose logits are wanted after all
  // layers.
  using ExchangeRows = std::function<void(const Pass& pass, const ops::View& x)>;
  ExchangeRows rows_in;
  ExchangeRows rows_out;
  ExchangeRows rows_back;

  std::vector<state::LayerStateShape> states() const;
  // Runs the tokens through all layers. `logits` receives the rows of the last logits.dim(0) tokens, or is
  // absent.
  void forward(Device& dev, const Pass& pass, std::span<const state::LayerState> states,
               const ops::View& logits) const;
  // If other nodes hold layers, forward() without logits sends them the rows; this computes the logits of
  // what returns.
  void arrive(Device& dev, const Pass& pass, const ops::View& logits) const;
  // Bytes of activations that a pass with that many tokens needs.
  std::size_t activation_bytes(std::int64_t tokens, const state::CacheFormat& cache,
                               ops::DType activations) const;

 private:
  void run_layers(Device& dev, const Pass& pass, std::span<const state::LayerState> states,
                  const ops::View& x) const;
  void run_head(Device& dev, const Pass& pass, const ops::View& x, const ops::View& logits) const;
  // The normalised rows of x whose logits are wanted.
  ops::View normed_rows(Device& dev, const Pass& pass, const ops::View& x, std::int64_t rows) const;
};

}  // namespace sluice::layers
