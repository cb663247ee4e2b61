#include <vector>

#include "base/error.h"
#include "base/integer_cast.h"
#include "ops/check.h"

namespace sluice::ops {

void check_sequences(std::string_view op, const SequenceFields& fields, bool host_memory) {
  if (!fields.seq_starts.present()) {
    if (fields.slots.present()) fail(ErrorKind::input, "{}: field 'slots' is given without 'seq_starts'", op);
    return;
  }
  const std::int64_t sequences = fields.seq_starts.dim(0) - 1;
  if (sequences < 1)
    fail(ErrorKind::input, "{}: field 'seq_starts' has {} entries, allowed is B+1 with B at least 1", op,
         sequences + 1);
  if (fields.slots.present() && fields.slots.dim(0) != sequences)
    fail(ErrorKind::input, "{}: field 'slots' has {} entries, allowed is one per sequence, {}", op,
         fields.slots.dim(0), sequences);
  if (!fields.slots.present() && sequences > fields.pool)
    fail(ErrorKind::input, "{}: field 'seq_starts' names {} sequences, the pool or page table has {} rows",
         op, sequences, fields.pool);
  if (!host_memory) return;
  const auto* starts = static_cast<const std::int32_t*>(fields.seq_starts.data);
  if (starts[0] != 0 || starts[sequences] != fields.tokens)
    fail(ErrorKind::input, "{}: field 'seq_starts' runs from {} to {}, allowed is 0 to T = {}", op, starts[0],
         starts[sequences], fields.tokens);
  for (std::int64_t b = 0; b < sequences; ++b)
    if (starts[b] > starts[b + 1])
      fail(ErrorKind::input, "{}: field 'seq_starts' falls from {} to {} at {}, it must not fall", op,
           starts[b], starts[b + 1], b + 1);
  if (!fields.slots.present()) return;
  const auto* slots = static_cast<const std::int32_t*>(fields.slots.data);
  std::vector<bool> taken(to_size(fields.pool));
  for (std::int64_t b = 0; b < sequences; ++b) {
    if (slots[b] < 0 || slots[b] >= fields.pool)
      fail(ErrorKind::input, "{}: field 'slots' has {} at {}, allowed is 0 to {}", op, slots[b], b,
           fields.pool - 1);
    if (fields.pool_written && taken[to_size(slots[b])])
      fail(ErrorKind::input,
           "{}: field 'slots' names row {} twice, sequences must not share a row that the op writes", op,
           slots[b]);
    taken[to_size(slots[b])] = true;
  }
}

void check_page_table(std::string_view op, const ConstView& table, bool several_sequences, const Dims& dims) {
  const std::int64_t rows = dims["S"];
  if (rows < 64 || (rows & (rows - 1)) != 0)
    fail(ErrorKind::input, "{}: pages have {} rows, allowed is a power of two from 64 on", op, rows);
  if (table.rank() != (several_sequences ? 2 : 1))
    fail(ErrorKind::input, "{}: field 'page_table' has shape {}, allowed is {}", op, to_string(table.shape),
         several_sequences ? "[slots,pages] under 'seq_starts'" : "[pages] without 'seq_starts'");
}

void check_sequence_value(std::string_view op, std::string_view field, const SequenceValue& value,
                          const ConstView& seq_starts) {
  const ConstView& each = value.per_sequence;
  if (!seq_starts.present()) {
    if (each.present())
      fail(ErrorKind::input, "{}: field '{}' is given per sequence without 'seq_starts'", op, field);
    return;
  }
  if (!each.present()) {
    if (value.value != 0)
      fail(ErrorKind::input,
           "{}: attribute '{}' is one number, under 'seq_starts' it must be a field I32 [B]", op, field);
    return;
  }
  if (each.dtype != DType::i32)
    fail(ErrorKind::input, "{}: field '{}' has type {}, allowed is I32", op, field, name(each.dtype));
  if (each.rank() != 1 || each.dim(0) != seq_starts.dim(0) - 1 || each.data == nullptr)
    fail(ErrorKind::input, "{}: field '{}' has shape {}, allowed is [B] = [{}]", op, field,
         to_string(each.shape), seq_starts.dim(0) - 1);
}

void check_row_value(std::string_view op, std::string_view field, const ConstView& per_row, DType type,
                     std::int64_t words, Dims& dims) {
  if (!per_row.present()) return;
  if (per_row.dtype != type)
    fail(ErrorKind::input, "{}: field '{}' has type {}, allowed is {}", op, field, name(per_row.dtype),
         name(type));
  if (dims["P"] < 0) dims["P"] = per_row.dim(0);
  const Shape allowed = words == 1 ? Shape{dims["P"]} : Shape{dims["P"], words};
  if (per_row.shape != allowed || per_row.data == nullptr || !per_row.contiguous())
    fail(ErrorKind::input, "{}: field '{}' has shape {}, allowed is [{}] = {}, contiguous", op, field,
         to_string(per_row.shape), words == 1 ? "P" : "P,2", to_string(allowed));
}

}  // namespace sluice::ops
