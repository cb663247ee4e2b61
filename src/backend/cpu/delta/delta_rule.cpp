// The gated delta rule: S *= e^g; u = beta (v - S k); S += u kT; out = S q for every token. With form
// `automatic`, whole chunks of 64 tokens use the chunked form and the rest of the sequence's part uses the
// recurrent one: the choice depends only on the sequence, so splitting it at a multiple of 64 changes no bit,
// nor does feeding the tokens of the rest one by one.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/delta/delta_rule.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <algorithm>

#include "backend/cpu/delta/chunked-inl.h"
#include "backend/cpu/delta/recurrent-inl.h"
#include "backend/cpu/runtime/context.h"
#include "base/integer_cast.h"
#include "ops/saves.h"
#include "sluice/ops/delta/delta_rule.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::delta::HWY_NAMESPACE {

constexpr std::int64_t kChunk = 64;

// Where the chunked part of a sequence ends and the recurrent part begins.
inline std::int64_t chunked_end(ops::DeltaForm form, const ops::Sequence& sequence) {
  if (form == ops::DeltaForm::recurrent) return sequence.begin;
  if (form == ops::DeltaForm::chunked) return sequence.end;
  return sequence.begin + sequence.tokens() / kChunk * kChunk;
}

// Tokens [begin, end) of a call.
struct TokenRange {
  std::int64_t begin;
  std::int64_t end;
};

// Calls run(from, to) for the tokens of a range, with save(saved) in between where states are to be saved.
template <class Run, class Save>
void run_with_saves(const ops::DeltaRule& op, const ops::Sequence& sequence, const TokenRange& range,
                    const Run& run, const Save& save) {
  std::int64_t from = range.begin;
  ops::Saves(op).for_each(sequence, [&](std::int64_t i, std::int64_t at) {
    if (at <= range.begin || at > range.end) return;
    run(from, at);
    from = at;
    save(op.saved[i]);
  });
  if (from < range.end) run(from, range.end);
}

void copy_state_rows(const ops::View& from, const ops::View& to, std::int64_t head, std::int64_t first,
                     std::int64_t count) {
  const std::size_t width = from.shape.back();
  for (std::int64_t row = first; row < first + count; ++row)
    std::copy_n(static_cast<const float*>(address(from, head, row)), width,
                static_cast<float*>(address(to, head, row)));
}

// Threaded over (sequence, key head, value heads that share it).
void run_chunked_parts(Context& context, const ops::DeltaRule& op, const ops::Sequences& sequences) {
  const std::int64_t key_heads = op.k.dim(1);
  const std::int64_t ratio = op.v.dim(1) / key_heads;
  std::int64_t group = std::min<std::int64_t>(ratio, 4);  // more states would not fit in cache
  while (group > 1 && sequences.count() * key_heads * (ratio / group) < 2 * context.pool().size()) --group;
  const std::int64_t groups = (ratio + group - 1) / group;
  const std::size_t bytes = DeltaChunks::floats(op, group) * sizeof(float);
  context.pool().parallel_for_dynamic(
      0, sequences.count() * key_heads * groups, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
        DeltaChunks chunks(op, reinterpret_cast<float*>(context.worker_scratch(worker, bytes)));
        for (std::int64_t item = begin; item < end; ++item) {
          const ops::Sequence sequence = sequences[item / groups / key_heads];
          const std::int64_t last = chunked_end(op.form, sequence);
          const std::int64_t first_head = item % groups * group;
          const std::int64_t heads = std::min(group, ratio - first_head);
          const std::int64_t key_head = item / groups % key_heads;
          const ops::View state = sequences.part(op.state, sequence);
          run_with_saves(
              op, sequence, {sequence.begin, last},
              [&](std::int64_t from, std::int64_t to) {
                chunks.run(from, to, state, key_head, first_head, heads);
              },
              [&](const ops::View& saved) {
                for (std::int64_t i = first_head; i < first_head + heads; ++i)
                  copy_state_rows(state, saved, value_head_of(op, key_head, i), 0, op.v.dim(2));
              });
        }
      });
}

// Threaded over (sequence, value head, block of state rows).
void run_recurrent_parts(Context& context, const ops::DeltaRule& op, const ops::Sequences& sequences) {
  const std::int64_t heads = op.v.dim(1);
  const std::int64_t blocks = op.v.dim(2) / static_cast<std::int64_t>(kRecurrentRows);
  const std::size_t bytes = recurrent_scratch_floats(to_size(op.k.dim(2))) * sizeof(float);
  context.pool().parallel_for(
      0, sequences.count() * heads * blocks, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
        auto* scratch = reinterpret_cast<float*>(context.worker_scratch(worker, bytes));
        for (std::int64_t item = begin; item < end; ++item) {
          const ops::Sequence sequence = sequences[item / blocks / heads];
          const ops::View state = sequences.part(op.state, sequence);
          const std::int64_t head = item / blocks % heads;
          const std::int64_t row = item % blocks * static_cast<std::int64_t>(kRecurrentRows);
          run_with_saves(
              op, sequence, {chunked_end(op.form, sequence), sequence.end},
              [&](std::int64_t from, std::int64_t to) {
                run_recurrent(op, from, to, {state, head, row}, scratch);
              },
              [&](const ops::View& saved) {
                copy_state_rows(state, saved, head, row, static_cast<std::int64_t>(kRecurrentRows));
              });
        }
      });
}

void delta_rule(Context& context, const ops::DeltaRule& op) {
  const ops::Sequences sequences(op, op.q.dim(0));
  bool chunked = false;
  bool recurrent = false;
  for (std::int64_t b = 0; b < sequences.count(); ++b) {
    const std::int64_t border = chunked_end(op.form, sequences[b]);
    chunked |= border > sequences[b].begin;
    recurrent |= border < sequences[b].end;
  }
  if (chunked) run_chunked_parts(context, op, sequences);
  if (recurrent) run_recurrent_parts(context, op, sequences);
}

}  // namespace sluice::backend::cpu::delta::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu::delta {

HWY_EXPORT(delta_rule);

}  // namespace sluice::backend::cpu::delta

namespace sluice::backend::cpu {

using namespace delta;

template <>
void run(Context& context, const ops::DeltaRule& op) {
  SLUICE_DISPATCH(context, delta_rule)(context, op);
}

}  // namespace sluice::backend::cpu
#endif
