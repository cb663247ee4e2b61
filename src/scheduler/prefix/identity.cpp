#include "scheduler/prefix/identity.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/integer_cast.h"
#include "experts/fingerprint.h"

namespace sluice::scheduler::prefix {

namespace {

// Incremented when a change affects the bits of caches in a way that the trial below cannot detect, such as
// the rounding of attention over thousands of tokens.
constexpr std::uint64_t kNumericVersion = 1;
constexpr std::int64_t kTrialTokens = 128;

std::uint64_t mix(std::string_view text, std::uint64_t seed) {
  return experts::fingerprint(std::as_bytes(std::span(text)), seed);
}

// All names, types, shapes and offsets, and some bytes of every tensor: reading all of a large model would
// take as long as many prompts.
std::uint64_t of_checkpoint(const checkpoint::TensorFiles& files) {
  constexpr std::size_t kSome = 256;
  std::uint64_t hash = 0;
  for (const checkpoint::TensorEntry* tensor : files.tensors()) {
    hash = mix(fmt::format("{} {} {} {}", tensor->name, checkpoint::name(tensor->dtype),
                           fmt::join(tensor->shape, ","), tensor->file_offset),
               hash);
    const std::size_t some = std::min(kSome, tensor->data.size());
    hash = experts::fingerprint(tensor->data.first(some), hash);
    hash = experts::fingerprint(tensor->data.last(some), hash);
  }
  return hash;
}

std::string options_text(const engine::Core& core) {
  const EngineOptions& options = core.options;
  const state::CacheFormat& cache = core.settings.cache;
  std::string text =
      fmt::format("{} isa={} exact={} activations={} cache={} bits={},{} miss={}", core.backend->name(),
                  options.isa, options.exact, static_cast<int>(core.settings.activations),
                  static_cast<int>(cache.type), cache.key_bits, cache.value_bits, options.miss);
  // Which experts the CPU computes depends on the GPU memory available.
  if (options.miss != "bus") text += fmt::format(" memory={} vram={}", options.memory, options.vram);
  return text;
}

std::vector<std::byte> trial(engine::Core& core, const std::shared_ptr<engine::SlotGroup>& group) {
  engine::Executor& executor = *core.executor;
  const engine::Executor::Slot slot = executor.open(group);
  return executor.run([&] {
    engine::ForwardPass& pass = slot.pass();
    std::vector<std::int32_t> ids(to_size(std::min({kTrialTokens, pass.pool().capacity(), pass.chunk()})));
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = (i * i * 7919 + 13) % to_size(core.summary.vocab);
    pass.run({ops::Phase::prefill, {{slot.number(), 0, ids, 0}}});
    core.backend->synchronize();
    return pass.pool().save(slot.number(), std::ssize(ids), true);
  });
}

}  // namespace

std::uint64_t identity(engine::Core& core, const std::shared_ptr<engine::SlotGroup>& group) {
  std::uint64_t hash = mix(options_text(core), kNumericVersion);
  if (core.store.has_files()) hash = mix(fmt::format("{}", of_checkpoint(core.store.files())), hash);
  return experts::fingerprint(trial(core, group), hash);
}

}  // namespace sluice::scheduler::prefix
