// DeepSeek's router: s = sigmoid(logits); the experts of the best groups are chosen by s + bias and weighted
// by s alone. Threaded over tokens. All in double, so that only equal scores tie: E is small, and a choice
// must not depend on how vector instructions round.
#include "sluice/ops/routing/route_sigmoid.h"

#include <cmath>

#include "backend/cpu/routing/largest.h"
#include "backend/cpu/runtime/context.h"
#include "backend/cpu/runtime/parameter.h"
#include "backend/cpu/runtime/row_walk.h"
#include "base/integer_cast.h"

namespace sluice::backend::cpu::routing {

namespace {

// One token's experts and groups, in a worker's scratch.
struct Scores {
  double* sigmoids;       // [E]
  double* biased;         // [E]
  double* groups;         // [groups]
  std::int32_t* order;    // [groups], the best one first
  std::int32_t* experts;  // [E], those of the best groups

  Scores(std::byte* scratch, std::int64_t expert_count, std::int64_t group_count)
      : sigmoids(reinterpret_cast<double*>(scratch)),
        biased(sigmoids + expert_count),
        groups(biased + expert_count),
        order(reinterpret_cast<std::int32_t*>(groups + group_count)),
        experts(order + group_count) {}
  static std::size_t bytes(std::int64_t expert_count, std::int64_t group_count) {
    return to_size(2 * expert_count + group_count) * sizeof(double) +
           to_size(expert_count + group_count) * sizeof(std::int32_t);
  }
};

double logit(const ops::RouteSigmoid& op, const void* row, std::int64_t e) {
  return op.logits.dtype == ops::DType::f32 ? static_cast<const float*>(row)[e]
                                            : to_float(static_cast<const ops::BFloat16*>(row)[e]);
}

double sum_of_two_largest(const double* values, std::int64_t count) {
  if (count == 1) return values[0];
  double first = std::max(values[0], values[1]);
  double second = std::min(values[0], values[1]);
  for (std::int64_t i = 2; i < count; ++i) {
    second = std::max(second, std::min(first, values[i]));
    first = std::max(first, values[i]);
  }
  return first + second;
}

// Lists the experts of the best groups; returns their number.
std::int64_t list_candidates(const ops::RouteSigmoid& op, const Scores& scores) {
  const std::int64_t size = op.logits.dim(1) / op.groups;
  for (std::int64_t g = 0; g < op.groups; ++g)
    scores.groups[g] = sum_of_two_largest(scores.biased + g * size, size);
  std::iota(scores.order, scores.order + op.groups, 0);
  choose_largest(scores.groups, scores.order, op.groups, op.top_groups);
  for (std::int64_t i = 0; i < op.top_groups; ++i)
    std::iota(scores.experts + i * size, scores.experts + (i + 1) * size, to_int(scores.order[i] * size));
  return op.top_groups * size;
}

void route_token(const ops::RouteSigmoid& op, std::int64_t t, const float* bias, const Scores& scores) {
  const void* row = row_at(op.logits, t);
  for (std::int64_t e = 0; e < op.logits.dim(1); ++e) {
    scores.sigmoids[e] = 1 / (1 + std::exp(-logit(op, row, e)));
    scores.biased[e] = scores.sigmoids[e] + static_cast<double>(bias[e]);
  }
  choose_largest(scores.biased, scores.experts, list_candidates(op, scores), op.k);

  auto* chosen = static_cast<std::int32_t*>(row_at(op.experts, t));
  auto* weights = static_cast<float*>(row_at(op.weights, t));
  double sum = 0;
  for (std::int64_t j = 0; j < op.k; ++j) sum += scores.sigmoids[scores.experts[j]];
  const double factor = op.normalize ? op.scale / (sum + 1e-20) : op.scale;
  for (std::int64_t j = 0; j < op.k; ++j) {
    chosen[j] = scores.experts[j];
    weights[j] = static_cast<float>(scores.sigmoids[chosen[j]] * factor);
  }
}

}  // namespace

}  // namespace sluice::backend::cpu::routing

namespace sluice::backend::cpu {

using namespace routing;

template <>
void run(Context& context, const ops::RouteSigmoid& op) {
  const std::int64_t experts = op.logits.dim(1);
  auto* bias = reinterpret_cast<float*>(context.shared_scratch(to_size(experts) * sizeof(float)));
  read_parameters(op.bias, bias);
  context.pool().parallel_for(
      0, op.logits.dim(0), 1 + 1024 / experts, [&](std::int64_t begin, std::int64_t end, int worker) {
        const std::size_t bytes = Scores::bytes(experts, op.groups);
        const Scores scores(context.worker_scratch(worker, bytes), experts, op.groups);
        for (std::int64_t t = begin; t < end; ++t) route_token(op, t, bias, scores);
      });
}

}  // namespace sluice::backend::cpu
