#include "scheduler/settle.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "engine/executor.h"
#include "scheduler/prompt_budget.h"

namespace sluice::scheduler {

namespace {

constexpr std::int64_t kParallelOnHost = 8;
constexpr std::int64_t kParallelOnDevice = 32;
constexpr std::int64_t kSnapshotsOnHost = 4;
constexpr std::int64_t kSnapshotsOnDevice = 64;
constexpr std::int64_t kMostSnapshots = 64;  // the room for names of snapshots in a pass of one block

std::uint64_t free_host_memory() {
  const long pages = sysconf(_SC_AVPHYS_PAGES);
  const long bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || bytes <= 0) return std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(pages) * bytes;
}

// Bytes that sequences may take by default, leaving memory for others.
std::uint64_t memory_for_sequences(engine::Core& core) {
  // Streamed experts get the larger part of what is left.
  if (core.budget.limit() > 0) return core.budget.left() / (core.streamed.cache != nullptr ? 4 : 1);
  if (core.backend->traits().host_memory) return free_host_memory() / 2;
  const std::uint64_t all = core.backend->memory_bytes() / 10 * 9;
  return all - std::min(all, core.backend->allocated_bytes());
}

class Settling {
 public:
  Settling(engine::Core& core, const SchedulerOptions& options)
      : core_(core), asked_(options), settled_(options), memory_(memory_for_sequences(core)) {}

  SchedulerOptions settle() {
    const std::int64_t chunk = core_.settings.prefill_chunk;
    if (asked_.parallel == 0)
      settled_.parallel =
          std::min(core_.backend->traits().host_memory ? kParallelOnHost : kParallelOnDevice, chunk);
    if (asked_.context == 0) settled_.context = core_.model.max_positions;
    settled_.cache_snapshots = snapshots();
    while (asked_.parallel == 0 && settled_.parallel > 1 && !fits(one())) settled_.parallel /= 2;
    while (asked_.context == 0 && settled_.context > state::kPageRows && !fits(one())) settled_.context /= 2;
    settled_.cache_tokens = pages() * state::kPageRows;
    settled_.cache_memory = std::min(asked_.cache_memory, memory_for_prompts());
    return settled_;
  }

 private:
  std::int64_t one() const { return state::pages_for(settled_.context); }
  std::int64_t all() const { return settled_.parallel * one(); }
  bool fits(std::int64_t pages) const { return bytes(pages) <= memory_; }
  // For sequences with that many pages in total, and for the workspace of a pass.
  std::uint64_t bytes(std::int64_t pages) const {
    const state::Extent extent{settled_.parallel, settled_.context, pages, settled_.cache_snapshots};
    return engine::ForwardPass::claimed(core_.model.decoder, core_.settings, extent) +
           engine::Workspace::claimed(core_.model.decoder, core_.settings, core_.settings.prefill_chunk);
  }
  // The limit applies to everything the engine keeps, including rows evicted from pages.
  std::uint64_t memory_for_prompts() const {
    if (core_.budget.limit() == 0 || !core_.backend->traits().host_memory) return asked_.cache_memory;
    const std::uint64_t room = std::min(memory_, core_.budget.spare());
    return (room - std::min(room, bytes(state::pages_for(settled_.cache_tokens)))) / 2;
  }
  std::int64_t snapshots() const {
    const std::uint64_t state = core_.summary.state_bytes;
    if (state == 0 || !asked_.remember_prompts) return 0;
    if (asked_.cache_snapshots >= 0) return asked_.cache_snapshots;
    constexpr std::uint64_t kShare = 16;  // at most this fraction of memory
    const std::uint64_t memory = asked_.cache_vram > 0 ? std::min(asked_.cache_vram, memory_) : memory_;
    const std::int64_t most = core_.backend->traits().host_memory ? kSnapshotsOnHost : kSnapshotsOnDevice;
    return std::min<std::int64_t>(most, static_cast<std::int64_t>(memory / kShare / state));
  }
  // The pages that fit in that many bytes besides the states.
  std::int64_t pages_in(std::uint64_t bytes) const {
    const auto with = [&](std::int64_t pages) {
      return engine::ForwardPass::bytes(core_.model.decoder, core_.settings,
                                        {settled_.parallel, settled_.context, pages});
    };
    const std::uint64_t states =
        static_cast<std::uint64_t>(settled_.cache_snapshots) * core_.summary.state_bytes;
    return (bytes - std::min(bytes, states)) / std::max<std::uint64_t>(1, with(2) - with(1));
  }
  // Those requested; otherwise all that can be used, or as many of them as fit if no context was requested.
  std::int64_t pages() const {
    if (asked_.cache_vram > 0) return std::clamp(pages_in(asked_.cache_vram), one(), all());
    if (asked_.cache_tokens > 0) return std::clamp(state::pages_for(asked_.cache_tokens), one(), all());
    if (asked_.context > 0 || fits(all())) return all();
    std::int64_t least = one();
    std::int64_t most = all();
    while (least + 1 < most) {
      const std::int64_t middle = (least + most) / 2;
      (fits(middle) ? least : most) = middle;
    }
    return least;
  }

  engine::Core& core_;
  const SchedulerOptions& asked_;
  SchedulerOptions settled_;
  std::uint64_t memory_;
};

}  // namespace

SchedulerOptions settle(Engine& engine, const SchedulerOptions& options) {
  engine::Core& core = engine::core(engine);
  const std::int64_t longest = core.model.max_positions;
  const std::int64_t chunk = core.settings.prefill_chunk;
  if (options.parallel < 0 || options.parallel > chunk)
    fail(ErrorKind::input, "{} sequences at once are not possible, allowed is 1 to {}, the tokens of a pass",
         options.parallel, chunk);
  if (options.context < 0 || options.context > longest)
    fail(ErrorKind::input, "a context of {} tokens is not possible, the model allows 1 to {}",
         options.context, longest);
  if (options.cache_tokens < 0 || (options.cache_tokens > 0 && options.cache_tokens < options.context))
    fail(ErrorKind::input, "{} tokens of cache are fewer than one sequence's context of {}",
         options.cache_tokens, options.context);
  if (options.cache_tokens > 0 && options.cache_vram > 0)
    fail(ErrorKind::input, "give the size of the cache in tokens or in bytes, not both");
  if (options.cache_snapshots < -1 || options.cache_snapshots > kMostSnapshots)
    fail(ErrorKind::input, "{} prompt states where the model computes are not possible, allowed is 0 to {}",
         options.cache_snapshots, kMostSnapshots);
  if (!(options.token_interval_seconds > 0) || options.queue < 1)
    fail(ErrorKind::input, "the queue holds {} requests and the token interval is {} s, both must be above 0",
         options.queue, options.token_interval_seconds);
  if (options.state_spacing < kChunkUnit || options.state_spacing % kChunkUnit != 0)
    fail(ErrorKind::input, "a state every {} tokens is not possible, it must be a multiple of {}",
         options.state_spacing, kChunkUnit);
  if (options.cache_keys < 0)
    fail(ErrorKind::input, "the number of cache keys is {}, it must be 0 or more", options.cache_keys);
  if (chunk < kChunkUnit)
    fail(ErrorKind::input,
         "prompts are processed {} tokens at a time, a scheduler needs passes of {} or more", chunk,
         kChunkUnit);
  return Settling(core, options).settle();
}

}  // namespace sluice::scheduler
