#include "sluice/ops/delta/causal_conv1d.h"

#include <cmath>
#include <vector>

#include "backend/reference/runtime/element.h"
#include "backend/reference/runtime/reference.h"
#include "ops/saves.h"

namespace sluice::backend::reference::delta {

namespace {

void convolve_channel(const ops::CausalConv1d& op, const ops::Sequence& sequence, const ops::View& state,
                      std::int64_t channel) {
  const std::int64_t taps = op.weight.dim(1);
  std::vector<double> line;  // the state followed by x
  for (std::int64_t r = 0; r < taps - 1; ++r) line.push_back(get(state, r, channel));
  for (std::int64_t t = sequence.begin; t < sequence.end; ++t) line.push_back(get(op.x, t, channel));
  for (std::int64_t t = 0; t < sequence.tokens(); ++t) {
    double sum = 0;
    for (std::int64_t j = 0; j < taps; ++j) sum += line[t + j] * get(op.weight, channel, j);
    set(op.out, sum / (1 + std::exp(-sum)), sequence.begin + t, channel);
  }
  ops::Saves(op).for_each(sequence, [&](std::int64_t i, std::int64_t end) {
    for (std::int64_t r = 0; r < taps - 1; ++r) set(op.saved, line[end - sequence.begin + r], i, r, channel);
  });
  for (std::int64_t r = 0; r < taps - 1; ++r) set(state, line[sequence.tokens() + r], r, channel);
}

}  // namespace

}  // namespace sluice::backend::reference::delta

namespace sluice::backend::reference {

using namespace delta;

template <>
void run(const ops::CausalConv1d& op) {
  const ops::Sequences sequences(op, op.x.dim(0));
  for (std::int64_t b = 0; b < sequences.count(); ++b) {
    const ops::View state = sequences.part(op.state, sequences[b]);
    for (std::int64_t c = 0; c < op.x.dim(1); ++c) convolve_channel(op, sequences[b], state, c);
  }
}

}  // namespace sluice::backend::reference
