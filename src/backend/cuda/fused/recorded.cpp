#include "backend/cuda/fused/recorded.h"

namespace sluice::backend::cuda::fused {

void run_all(Context& context, std::span<const RecordedOp> program) {
  constexpr std::size_t (*kPatterns[])(Context&, const Place&) = {project_and_route, norm_project,
                                                                  down_combine, early_states};
  for (std::size_t at = 0; at < program.size();) {
    context.phase = program[at].phase;
    std::size_t taken = 0;
    for (const auto pattern : kPatterns)
      if (taken == 0) taken = pattern(context, Place(program, at));
    if (taken == 0) {
      std::visit([&](const auto& op) { run(context, op); }, program[at].op);
      taken = 1;
    }
    at += taken;
  }
}

}  // namespace sluice::backend::cuda::fused
