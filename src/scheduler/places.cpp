#include "scheduler/places.h"

#include <utility>

namespace sluice::scheduler {

Places::Places(engine::Executor& executor, std::int64_t slots, std::int64_t capacity, std::int64_t pages)
    : executor_(executor), group_(executor.reserve({slots, capacity, pages})) {}

std::int64_t Places::missing_pages(const Sequence& sequence, std::int64_t added) const {
  return group_->pass.pool().missing_pages(sequence.slot->number(), sequence.past, added);
}

void Places::open(Sequence& sequence) {
  sequence.slot.emplace(executor_.open(group_));
  sequence.follows = false;
  ++taken_;
  if (sequence.past == 0) return;
  const std::vector<std::byte> saved = std::exchange(sequence.saved, {});
  executor_.run([&] { pass().pool().load(sequence.slot->number(), sequence.past, true, saved); });
}

void Places::close(Sequence& sequence) {
  if (!sequence.slot) return;
  sequence.slot.reset();
  --taken_;
}

void Places::suspend(Sequence& sequence) {
  if (sequence.past > 0)
    sequence.saved =
        executor_.run([&] { return pass().pool().save(sequence.slot->number(), sequence.past, true); });
  close(sequence);
}

}  // namespace sluice::scheduler
