#include <algorithm>

#include "base/error.h"
#include "base/integer_cast.h"
#include "engine/executor.h"
#include "experts/profile.h"
#include "sluice/experts.h"
#include "sluice/session.h"

namespace sluice {

namespace {

using Passes = std::vector<std::vector<std::int32_t>>;  // of one layer

constexpr int kPercentOfExperts[] = {10, 25, 40, 50, 75};

struct Count {
  std::uint64_t hits = 0;
  std::uint64_t all = 0;
};

// Simulates one layer's cache; passes before `warm` are not counted.
Count replay(experts::Policy& policy, const Passes& passes, std::int64_t experts, std::int64_t slots,
             std::size_t warm) {
  std::vector<bool> cached(to_size(experts));
  std::int64_t used = 0;
  Count count;
  std::vector<std::int32_t> candidates;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    policy.use(passes[i]);
    for (const std::int32_t e : passes[i]) {
      const bool hit = cached[e];
      count.hits += i >= warm && hit ? 1 : 0;
      count.all += i >= warm ? 1 : 0;
    }
    for (const std::int32_t e : passes[i]) {
      if (cached[e]) continue;
      if (used == slots) {
        candidates.clear();
        for (std::int32_t c = 0; c < experts; ++c)
          if (cached[to_size(c)] && std::find(passes[i].begin(), passes[i].end(), c) == passes[i].end())
            candidates.push_back(c);
        if (candidates.empty()) continue;
        cached[policy.victim(candidates)] = false;
        --used;
      }
      cached[e] = true;
      ++used;
    }
  }
  return count;
}

// How often the first `first` passes needed each expert.
std::vector<std::uint32_t> profile(const Passes& passes, std::int64_t experts, std::size_t first) {
  std::vector<std::uint32_t> uses(to_size(experts));
  for (std::size_t i = 0; i < first; ++i)
    for (const std::int32_t e : passes[i]) ++uses[e];
  return uses;
}

std::vector<Passes> record(const std::shared_ptr<Engine>& engine, std::span<const std::int32_t> prompt,
                           std::int64_t tokens, std::uint64_t seed) {
  experts::Cache& cache = *engine::core(*engine).streamed.cache;
  std::vector<Passes> layers(to_size(cache.store().layers()));
  const auto session = engine->new_session(std::ssize(prompt) + tokens + 1);
  const SamplingSettings settings{.temperature = 1, .seed = seed};
  const std::int64_t vocab = engine->summary().vocab;
  session->extend(prompt);
  session->sample(settings, vocab);
  const auto observe = [&](std::function<void(int, std::span<const std::int32_t>)> observer) {
    engine::core(*engine).executor->run([&] { cache.observe(std::move(observer)); });
  };
  observe([&](int layer, std::span<const std::int32_t> experts) {
    layers[layer].emplace_back(experts.begin(), experts.end());
  });
  for (std::int64_t i = 0; i < tokens; ++i) session->step_and_sample(settings, vocab);
  observe({});
  return layers;
}

}  // namespace

ExpertUsage expert_usage(const Engine& engine) {
  const engine::placement::StreamedModel& streamed = engine::core(engine).streamed;
  const auto describe = [](std::int64_t slots, std::string reader, experts::Usage usage) -> ExpertUsage {
    return {slots,        std::move(reader), usage.hits,         usage.misses,         usage.foreseen,
            usage.unused, usage.bytes_read,  usage.wait_seconds, std::move(usage.uses)};
  };
  return engine::core(engine).executor->run([&]() -> ExpertUsage {
    if (streamed.tier != nullptr) return describe(streamed.tier->slots(), "the bus", streamed.tier->usage());
    if (streamed.cache == nullptr) return {};
    const experts::Cache& cache = *streamed.cache;
    return describe(cache.slots(), cache.reader().description(), cache.usage());
  });
}

void write_expert_profile(const ExpertUsage& usage, const std::filesystem::path& path) {
  if (usage.uses.empty())
    fail(ErrorKind::input, "the use of experts is not counted when all stay in memory; set expert_slots");
  experts::write_profile(usage.uses, path);
}

PolicyComparison compare_policies(const std::shared_ptr<Engine>& engine, std::span<const std::int32_t> prompt,
                                  std::int64_t tokens, std::uint64_t seed) {
  if (engine::core(*engine).streamed.cache == nullptr)
    fail(ErrorKind::input, "comparing policies needs an engine that streams its experts; set expert_slots");
  if (tokens < 2 || prompt.empty())
    fail(ErrorKind::input, "a trace needs a prompt and at least 2 tokens, given are {} and {}", prompt.size(),
         tokens);
  const std::vector<Passes> layers = record(engine, prompt, tokens, seed);
  const std::int64_t experts = engine->summary().experts;
  const std::size_t warm = tokens / 2;
  PolicyComparison result;
  result.passes = tokens - tokens / 2;
  for (const int percent : kPercentOfExperts)
    result.slots.push_back(std::max(engine->summary().experts_per_token + 1, experts * percent / 100));
  std::vector<std::string> names;
  for (const std::string_view name : experts::policy_names()) names.emplace_back(name);
  names.emplace_back("belady");
  for (const std::string& name : names) {
    PolicyComparison::Row row{name, {}};
    for (const std::int64_t slots : result.slots) {
      Count sum;
      for (const Passes& passes : layers) {
        const auto policy = name == "belady"
                                ? experts::make_belady(experts, passes)
                                : experts::make_policy(name, experts, profile(passes, experts, warm));
        const Count count = replay(*policy, passes, experts, slots, warm);
        sum.hits += count.hits;
        sum.all += count.all;
      }
      row.hit_rates.push_back(to_double(sum.hits) / to_double(sum.all));
    }
    result.rows.push_back(std::move(row));
  }
  return result;
}

}  // namespace sluice
