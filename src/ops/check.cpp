#include "ops/check.h"

#include "ops/erase.h"
#include "sluice/ops/ops.h"

namespace sluice::ops {

template <class Op>
void check(const Op& op, bool host_memory) {
  check_attributes(op);
  ErasedOp<Op> erased(op);
  Dims& dims = erased.dims;
  check_fields(Op::kName, erased.fields, erased.pooled, host_memory, dims);
  if constexpr (kHasSequences<Op>) {
    std::int64_t pool = dims["P"];
    if constexpr (kHasPages<Op>)
      if (op.page_table.present()) {
        check_page_table(Op::kName, op.page_table, op.seq_starts.present(), dims);
        pool = dims["slots"];
      }
    check_sequences(Op::kName, {op.seq_starts, op.slots, dims["T"], pool, erased.pool_written()},
                    host_memory);
    for_each_entry<Op>([&](const auto& entry) {
      if constexpr (std::is_same_v<Member<std::remove_cvref_t<decltype(entry)>>, SequenceValue>)
        check_sequence_value(Op::kName, entry.name, op.*entry.member, op.seq_starts);
    });
  }
  for_each_entry<Op>([&](const auto& entry) {
    using M = Member<std::remove_cvref_t<decltype(entry)>>;
    if constexpr (kIsRowValue<M>)
      check_row_value(Op::kName, entry.name, (op.*entry.member).per_row, row_type<M>(), row_words<M>(), dims);
  });
  if constexpr (requires { op.check_limits(dims, host_memory); }) op.check_limits(dims, host_memory);
}

namespace {

template <class... Ops>
constexpr auto instantiate(OpList<Ops...>) {
  return std::tuple(&check<Ops>...);
}
// [[gnu::used]] makes the compiler emit check<Op> for every op here, and nowhere else.
[[gnu::used]] constexpr auto kInstantiated = instantiate(AllOps{});

}  // namespace
}  // namespace sluice::ops
