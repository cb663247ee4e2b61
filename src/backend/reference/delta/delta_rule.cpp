#include "sluice/ops/delta/delta_rule.h"

#include <cmath>
#include <vector>

#include "backend/reference/runtime/element.h"
#include "backend/reference/runtime/reference.h"
#include "base/integer_cast.h"
#include "ops/saves.h"

namespace sluice::backend::reference::delta {

namespace {

// Every this many tokens the state is rounded to F32, as it is stored between calls. So where the passes of a
// prompt end, which is always such a multiple, changes no bit.
constexpr std::int64_t kStatesAreF32 = 64;

// Row i of one value head's state over all tokens of a sequence; the rows are independent of each other.
void run_state_row(const ops::DeltaRule& op, const ops::Sequence& sequence, const ops::View& state,
                   std::int64_t head, std::int64_t i) {
  const std::int64_t width = op.k.dim(2);
  const std::int64_t key_heads = op.k.dim(1);
  const std::int64_t key_head =
      op.heads == ops::DeltaHeads::block ? head / (op.v.dim(1) / key_heads) : head % key_heads;
  std::vector<double> row(to_size(width));
  for (std::int64_t t = sequence.begin; t < sequence.end; ++t) {
    if ((t - sequence.begin) % kStatesAreF32 == 0)
      for (std::int64_t j = 0; j < width; ++j) row[j] = get(state, head, i, j);
    const double decay = std::exp(get(op.g, t, head));
    double read = 0;
    for (std::int64_t j = 0; j < width; ++j) {
      row[j] *= decay;
      read += row[j] * get(op.k, t, key_head, j);
    }
    const double update = get(op.beta, t, head) * (get(op.v, t, head, i) - read);
    double out = 0;
    for (std::int64_t j = 0; j < width; ++j) {
      row[j] += update * get(op.k, t, key_head, j);
      out += row[j] * get(op.q, t, key_head, j);
    }
    set(op.out, out, t, head, i);
    ops::Saves(op).for_each({t, t + 1, 0}, [&](std::int64_t save, std::int64_t) {
      for (std::int64_t j = 0; j < width; ++j) set(op.saved, row[j], save, head, i, j);
    });
    if ((t + 1 - sequence.begin) % kStatesAreF32 == 0 || t + 1 == sequence.end)
      for (std::int64_t j = 0; j < width; ++j) set(state, row[j], head, i, j);
  }
}

}  // namespace

}  // namespace sluice::backend::reference::delta

namespace sluice::backend::reference {

using namespace delta;

// Both forms are this recurrence: they differ only in rounding, which is negligible in double.
template <>
void run(const ops::DeltaRule& op) {
  const ops::Sequences sequences(op, op.q.dim(0));
  for (std::int64_t b = 0; b < sequences.count(); ++b) {
    const ops::View state = sequences.part(op.state, sequences[b]);
    for (std::int64_t head = 0; head < op.v.dim(1); ++head)
      for (std::int64_t i = 0; i < op.v.dim(2); ++i) run_state_row(op, sequences[b], state, head, i);
  }
}

}  // namespace sluice::backend::reference
