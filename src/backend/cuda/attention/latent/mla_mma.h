// Latent attention on tensor cores.
#pragma once

#include "backend/cuda/attention/attend.cuh"
#include "backend/cuda/attention/dense_cache.cuh"

namespace sluice::backend::cuda::attention::latent {

struct MlaCall {
  AttendCall attend;
  HeadRows latent_queries;
  HeadRows rope_queries;
  DenseCache latents;
  DenseCache ropes;
};

bool mla_mma_supports(const Context& context, const MlaCall& call);
// Decode and prefill, for calls that mla_mma_supports() accepts.
void attend_mla_mma(Context& context, const MlaCall& call);

}  // namespace sluice::backend::cuda::attention::latent
