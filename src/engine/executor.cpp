#include "engine/executor.h"

#include <algorithm>

#include "base/error.h"
#include "base/integer_cast.h"

namespace sluice::engine {

Executor::Executor(Core& core) : core_(core), workspace_(core) {}
Executor::~Executor() = default;

Executor::Slot::~Slot() {
  if (executor_ != nullptr) executor_->close(*this);
}

void Executor::close(Slot& slot) {
  run([&] {
    slot.group_->used[to_size(slot.number_)] = false;
    try {
      slot.pass().close(slot.number_);
    } catch (const Error&) {  // the device is lost, so no one will use its pages
    }
    slot.group_.reset();
  });
}

std::shared_ptr<SlotGroup> Executor::make_group(const state::Extent& extent, std::int64_t chunk) {
  if (extent.at_once() < 1 || extent.at_once() > core_.settings.prefill_chunk)
    fail(ErrorKind::input, "a step of {} sequences is not possible, allowed is 1 to {}, the tokens of a pass",
         extent.at_once(), core_.settings.prefill_chunk);
  if (!extent.growing) {  // otherwise sequences add what they need
    const std::uint64_t own = ForwardPass::claimed(core_.model.decoder, core_.settings, extent);
    core_.place_experts(workspace_.growth(chunk) + own);
    workspace_.grow(chunk, own);
  }
  // Whoever releases the group last, its memory and programs are destroyed on the thread that uses them.
  const auto drop = [this](SlotGroup* last) { run([&] { drop_group(std::unique_ptr<SlotGroup>(last)); }); };
  std::shared_ptr<SlotGroup> group(new SlotGroup(core_, workspace_, extent, chunk), drop);
  groups_.push_back(group);
  return group;
}

void Executor::drop_group(std::unique_ptr<SlotGroup> group) noexcept {
  try {
    core_.backend->synchronize();
  } catch (const Error&) {  // the device is lost and no longer uses the memory
  }
  group.reset();
  std::erase_if(groups_, [](const auto& known) { return known.expired(); });
  if (groups_.empty()) workspace_.release();
}

std::shared_ptr<SlotGroup> Executor::reserve(const state::Extent& extent, std::int64_t chunk) {
  const std::int64_t most = chunk > 0 ? chunk : core_.settings.prefill_chunk;
  return run([&] { return make_group(extent, std::min(most, extent.slots * extent.capacity)); });
}

// As many slots and pages as addresses are reserved for.
state::Extent Executor::lone_extent(const Core& core) {
  constexpr std::int64_t kSlots = 1024;
  constexpr std::size_t kAddresses = std::size_t{1} << 40;
  const state::StateBytes each = state::bytes_of(core.model.decoder.states(), core.settings.cache);
  state::Extent extent{.slots = kSlots, .capacity = core.model.max_positions, .growing = true};
  const std::size_t pages = each.page == 0 ? kAddresses : kAddresses / each.page;
  extent.pages = std::min<std::int64_t>(kSlots * extent.pages_per_slot(), static_cast<std::int64_t>(pages));
  if (each.slot > 0)
    extent.slots = std::min<std::int64_t>(kSlots, static_cast<std::int64_t>(kAddresses / each.slot));
  return extent;
}

Executor::Slot Executor::open(std::int64_t capacity) {
  return run([&] {
    std::shared_ptr<SlotGroup> group = lone_.lock();
    if (group == nullptr) group = make_group(lone_extent(core_), core_.settings.prefill_chunk);
    lone_ = group;
    return open(group, capacity);
  });
}

Executor::Slot Executor::open(const std::shared_ptr<SlotGroup>& group, std::int64_t capacity) {
  return run([&] {
    const auto free = std::find(group->used.begin(), group->used.end(), false);
    if (free == group->used.end()) fail(ErrorKind::busy, "all {} slots are in use", group->used.size());
    const std::int32_t number = free - group->used.begin();
    group->pass.open(number, capacity);
    *free = true;
    return Slot(*this, group, number);
  });
}

void Executor::fork(const Slot& from, const Slot& to, std::int64_t rows) {
  if (from.group_ != to.group_) fail(ErrorKind::internal, "slots of two groups share nothing");
  run([&] {
    to.pass().forget(to.number());
    to.pass().pool().fork(from.number(), to.number(), rows);
  });
}

void Executor::run_batches(ops::Phase phase, std::span<const SlotTokens> tokens, HearLogits hear) {
  std::vector<bool> done(tokens.size());
  std::vector<float> logits;
  for (std::size_t first = 0; first < tokens.size(); ++first) {
    if (done[first]) continue;
    ForwardPass& pass = tokens[first].slot->pass();
    Batch batch;
    batch.phase = phase;
    std::vector<std::size_t> members;
    for (std::size_t i = first; i < tokens.size(); ++i) {
      if (&tokens[i].slot->pass() != &pass) continue;
      done[i] = true;
      members.push_back(i);
      batch.sequences.push_back({tokens[i].slot->number(), tokens[i].past, tokens[i].ids, tokens[i].rows});
    }
    pass.run(batch);
    pass.read_logits(logits);
    std::span<const float> left = logits;
    const auto vocab = to_size(core_.model.decoder.vocab);
    for (const std::size_t i : members) {
      const std::size_t own = to_size(tokens[i].rows) * vocab;
      hear(i, left.first(own));
      left = left.subspan(own);
    }
  }
}

void Executor::prefill(std::span<const SlotTokens> prompts, HearLogits hear) {
  run([&] { run_batches(ops::Phase::prefill, prompts, hear); });
}

void Executor::decode(std::span<const SlotTokens> tokens, HearLogits hear) {
  run([&] { run_batches(ops::Phase::decode, tokens, hear); });
}

Executor::Memory Executor::memory() {
  return run([&] {
    Memory memory;
    memory.workspace = workspace_.bytes();
    for (const std::weak_ptr<SlotGroup>& known : groups_)
      if (const std::shared_ptr<SlotGroup> group = known.lock()) {
        memory.groups += group->pass.bytes();
        memory.programs += group->pass.program_bytes();
      }
    return memory;
  });
}

}  // namespace sluice::engine
