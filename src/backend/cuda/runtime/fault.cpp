#include "backend/cuda/runtime/fault.h"

#include <fmt/format.h>

namespace sluice::backend::cuda {

std::string describe(const Fault& fault) {
  const auto outside = [&](std::string_view what) {
    return fmt::format("{} is {}, allowed is 0 to {}", what, fault.given, fault.limit - 1);
  };
  switch (static_cast<FaultKind>(fault.kind)) {
    case FaultKind::none:
      return "no fault";
    case FaultKind::token_id:
      return outside("embed: an entry of 'ids'");
    case FaultKind::expert_id:
      return outside("an entry of 'experts'");
    case FaultKind::cache_row:
      return outside("a token's cache row");
    case FaultKind::pool_slot:
      return outside("an entry of 'slots'");
    case FaultKind::sequence_start:
      return outside("an entry of 'seq_starts'");
    case FaultKind::router_logit:
      return fmt::format("'logits' of token {} contain NaN", fault.given);
    case FaultKind::sampled_logit:
      return fmt::format(
          "the logit of token {} is NaN: the weights are damaged, or their format is not what config.json "
          "says",
          fault.given);
    case FaultKind::ring_start:
      return fmt::format("'ring_start' is {}, allowed is 0 unless the cache is full", fault.given);
    case FaultKind::token_index:
      return outside("moe_scatter_add: an entry of 'token_idx'");
    case FaultKind::sampled_mask:
      return fmt::format("sample: field 'allowed' allows no token in row {}", fault.given);
    case FaultKind::page:
      return outside("an entry of 'page_table'");
    case FaultKind::save_place:
      return fmt::format(
          "an entry of 'save_at' is {}, allowed are multiples of 64 after the first token of a sequence, up "
          "to {}",
          fault.given, fault.limit - 1);
  }
  return fmt::format("unknown fault {}", fault.kind);
}

}  // namespace sluice::backend::cuda
