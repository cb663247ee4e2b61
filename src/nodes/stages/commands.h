// Commands that the leading node sends to the others, executed in order. Groups of slots are numbered.
#pragma once

#include <cstdint>

#include "base/integer_cast.h"
#include "engine/batch.h"
#include "nodes/wire.h"
#include "state/state_pool.h"

namespace sluice::nodes::stages {

enum class Command : std::uint8_t {
  open,                // group, extent, chunk; answered with an error or nothing, and the sizes of saves
  close,               // group
  promise,             // group, slot, capacity; answered with an error or nothing
  pass,                // group, batch; rows follow
  reset,               // group, slot
  release,             // group, slot
  fork,                // group, from, to, rows
  hold,                // group, page
  drop,                // group, page
  adopt,               // group, slot, pages
  save,                // group, slot, rows, with caches; answered with the bytes
  load,                // group, slot, rows, with caches; the bytes follow
  save_blocks,         // group, slot, begin, end; answered with the bytes
  load_blocks,         // group, slot, begin, end; the bytes follow
  save_page_block,     // group, page, block; answered with the bytes
  copy_to_snapshot,    // group, slot, place
  copy_from_snapshot,  // group, slot, place
  save_snapshot,       // group, place; answered with the bytes
  wait,                // group; answered with nothing once all earlier commands are done
  quit,
};

// Bytes of a saved sequence of such a group: a fixed part and a part per row.
struct SavedSize {
  std::size_t state = 0;
  std::size_t row = 0;
  std::size_t bytes(std::int64_t rows, bool with_caches) const {
    return state + (with_caches ? row * to_size(rows) : 0);
  }
  std::size_t block() const { return row * to_size(state::kBlockRows); }
};

inline void put(Writer& writer, const engine::Batch& batch) {
  writer.put(batch.phase);
  writer.put(batch.replayed);
  writer.put(batch.sequences.size());
  for (const engine::Batch::Sequence& sequence : batch.sequences) {
    writer.put(sequence.slot);
    writer.put(sequence.past);
    writer.put(sequence.rows);
    writer.put_all(sequence.ids);
  }
  writer.put_all(std::span(batch.saves));
}

// A batch together with the tokens it points to.
struct OwnedBatch {
  engine::Batch batch;
  std::vector<std::vector<std::int32_t>> ids;
};

inline OwnedBatch get_batch(Reader& reader) {
  OwnedBatch owned;
  owned.batch.phase = reader.get<ops::Phase>();
  owned.batch.replayed = reader.get<bool>();
  const auto count = reader.get<std::size_t>();
  for (std::size_t i = 0; i < count; ++i) {
    engine::Batch::Sequence& sequence = owned.batch.sequences.emplace_back();
    sequence.slot = reader.get<std::int32_t>();
    sequence.past = reader.get<std::int64_t>();
    sequence.rows = reader.get<std::int64_t>();
    sequence.ids = owned.ids.emplace_back(reader.get_all<std::int32_t>());
  }
  owned.batch.saves = reader.get_all<engine::Batch::Save>();
  return owned;
}

}  // namespace sluice::nodes::stages
