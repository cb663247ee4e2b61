// Invalid contents that a kernel found in a field. The host cannot check them before the op runs, so the
// kernel skips the row and records the first fault, which the next synchronize() throws.
#pragma once

#include <string>

namespace sluice::backend::cuda {

enum class FaultKind : int {
  none,
  token_id,        // embed: an id outside the table
  expert_id,       // an expert outside the stack
  cache_row,       // a position past a cache's capacity
  pool_slot,       // a slot outside the pool
  sequence_start,  // seq_starts that decrease or exceed the number of tokens
  router_logit,    // NaN among a router's logits
  ring_start,      // a ring that starts inside a cache that is not full
  sampled_logit,   // NaN among the logits of a model
  token_index,     // moe_scatter_add: a token outside the sums
  sampled_mask,    // sample: a row without any allowed token
  page,            // a page outside the pool
  save_place,      // a state saved elsewhere than at multiples of 64 tokens
};

struct Fault {
  int kind = 0;
  long long given = 0;
  long long limit = 0;  // allowed is [0, limit)
};

std::string describe(const Fault& fault);

#ifdef __CUDACC__
// Only the first fault is kept.
__device__ inline void report(Fault* fault, FaultKind kind, long long given, long long limit) {
  if (atomicCAS_system(&fault->kind, 0, static_cast<int>(kind)) != 0) return;
  fault->given = given;
  fault->limit = limit;
  __threadfence_system();
}
#endif

}  // namespace sluice::backend::cuda
