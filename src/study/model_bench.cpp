#include "sluice/model_bench.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/error.h"
#include "base/integer_cast.h"
#include "engine/executor.h"
#include "study/step_profile.h"

namespace sluice {

namespace {

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// The range of speeds for `tokens` tokens in these times.
SpeedRange range_of(const std::vector<double>& seconds, std::int64_t tokens) {
  const auto [shortest, longest] = std::minmax_element(seconds.begin(), seconds.end());
  return {to_double(tokens) / *longest, to_double(tokens) / *shortest};
}

// Fills caches with values that are neither NaN nor subnormal, as in a real context. Packed codes may be
// anything, including the bytes of BF16 numbers.
void fill_caches(ops::Backend& backend, const state::StatePool& pool) {
  std::vector<float> noise(std::size_t{1} << 22);
  for (std::size_t i = 0; i < noise.size(); ++i)
    noise[i] = std::sin(static_cast<float>(i % 4096) * 0.7f + 0.3f);
  std::vector<ops::BFloat16> rounded(noise.size());
  for (std::size_t i = 0; i < noise.size(); ++i) rounded[i] = ops::to_bfloat16(noise[i]);
  for (const state::LayerState& layer : pool.layers()) {
    state::for_each_tensor(layer, [&](const ops::View& cache, state::Layout layout) {
      if (layout == state::Layout::whole) return;
      const std::size_t bytes = state::bytes_of(cache);
      const bool floats = cache.dtype == ops::DType::f32;
      const void* from = floats ? static_cast<const void*>(noise.data()) : rounded.data();
      const std::size_t block = noise.size() * (floats ? sizeof(float) : sizeof(ops::BFloat16));
      for (std::size_t at = 0; at < bytes; at += block)
        backend.upload(static_cast<std::byte*>(cache.data) + at, from, std::min(block, bytes - at));
    });
  }
}

// Spread over the vocabulary, so that experts are chosen as with varied texts.
std::int32_t token(std::int64_t i, std::int64_t vocab) {
  return static_cast<std::uint64_t>(i * 2654435761) % static_cast<std::uint64_t>(vocab);
}

// Tokens [begin, end) of a prompt.
std::vector<std::int32_t> prompt_ids(std::int64_t begin, std::int64_t end, std::int64_t vocab) {
  std::vector<std::int32_t> ids;
  for (std::int64_t i = begin; i < end; ++i) ids.push_back(token(i, vocab));
  return ids;
}

// Computes the prompt of sequence 0, in chunks.
void prefill(engine::ForwardPass& pass, std::int64_t depth, std::int64_t tokens, std::int64_t vocab) {
  for (std::int64_t at = 0; at < tokens; at += pass.chunk()) {
    const std::int64_t end = std::min(tokens, at + pass.chunk());
    const auto ids = prompt_ids(at, end, vocab);
    pass.run({ops::Phase::prefill, {{0, depth + at, ids, end == tokens ? 1 : 0}}});
  }
}

// The number of groups of sequences that are computed at once.
std::int64_t groups_of(const engine::ForwardPass& pass) {
  return std::min(pass.stages(), pass.slots());
}

// Decodes all sequences of a slot group at the same position, one token after the other.
class Decoding {
 public:
  Decoding(engine::ForwardPass& pass, const SamplingSettings& settings, std::int64_t vocab)
      : pass_(pass),
        settings_(settings),
        vocab_(vocab),
        requests_(to_size(pass.slots()), {settings_, {}, {}, true}) {}
  Decoding(const Decoding&) = delete;
  Decoding& operator=(const Decoding&) = delete;

  // Different values of `text` start different texts.
  void start(std::int64_t position, std::int64_t text) {
    std::vector<std::int32_t> ids;
    for (std::int64_t b = 0; b < pass_.slots(); ++b)
      ids.push_back(token((position + text) * pass_.slots() + b, vocab_));
    engine::Batch batch{ops::Phase::decode, {}};
    next_.clear();
    for (std::int32_t slot = 0; slot < to_int(ids.size()); ++slot) {
      const std::size_t i = slot;
      batch.sequences.push_back({slot, position, std::span(ids).subspan(i, 1), 1});
      next_.push_back({slot, to_int(position), ids[i]});
    }
    pass_.run(batch);
    take(pass_.sample(next_, requests_, vocab_));
  }
  // Decodes that many tokens of each sequence.
  void steps(std::int64_t count) {
    if (const std::int64_t groups = groups_of(pass_); groups > 1) return steps_in_groups(count, groups);
    for (std::int64_t i = 0; i < count; ++i) take(pass_.step_and_sample(next_, requests_, vocab_));
  }

 private:
  using Next = engine::ForwardPass::Next;

  // With layers on several nodes, each node works on different sequences.
  void steps_in_groups(std::int64_t count, std::int64_t groups) {
    const auto first = [&](std::int64_t group) { return to_size(std::ssize(next_) * group / groups); };
    std::vector<engine::ForwardPass::Underway> underway(to_size(groups));
    for (std::int64_t i = 0; i <= count; ++i)
      for (std::int64_t group = 0; group < groups; ++group) {
        const std::span<Next> own = std::span(next_).subspan(first(group), first(group + 1) - first(group));
        if (i > 0) {
          pass_.arrive(underway[to_size(group)]);
          take(own, pass_.sample(own, std::span(requests_).first(own.size()), vocab_));
        }
        if (i == count) continue;
        engine::Batch batch{ops::Phase::decode, {}};
        for (const Next& next : own)
          batch.sequences.push_back({next.slot, next.position, std::span(&next.id, 1), 1});
        underway[to_size(group)] = pass_.depart(batch);
      }
  }

  void take(const std::vector<SampledToken>& chosen) { take(next_, chosen); }
  static void take(std::span<Next> tokens, const std::vector<SampledToken>& chosen) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i].id = chosen[i].id;
      ++tokens[i].position;
    }
  }

  engine::ForwardPass& pass_;
  SamplingSettings settings_;
  std::int64_t vocab_;
  std::vector<Next> next_;
  std::vector<engine::SampleRequest> requests_;
};

// The minimum of bytes that a decode step moves: for each group of sequences the dense weights once, the
// expected fraction of the experts for that many tokens, recurrent states read and written, and caches read.
double bytes_per_step(const ModelSummary& model, const ModelBenchOptions& options, std::int64_t groups) {
  const double parts = groups;
  const double experts = model.bytes_of(PartKind::experts);
  const double one = model.experts > 0 ? to_double(model.experts_per_token) / to_double(model.experts) : 0;
  const double touched = 1 - std::pow(1 - one, to_double(options.batch) / parts);
  const double dense = to_double(model.bytes_per_token) - experts * one;
  const double caches = to_double(model.cache_bytes_per_position) *
                        (to_double(options.depth) + to_double(options.generate) / 2);
  return parts * (dense + experts * touched) + to_double(options.batch) * (2.0 * model.state_bytes + caches);
}

void check(const ModelBenchOptions& o) {
  if (o.prompt < 0 || o.generate < 0 || o.depth < 0 || o.batch < 1 || o.repetitions < 1)
    fail(ErrorKind::input,
         "bench: prompt {}, generate {} and depth {} must not be negative, batch {} and repetitions {} "
         "at least 1",
         o.prompt, o.generate, o.depth, o.batch, o.repetitions);
}

// Seconds, by repetition.
struct Times {
  std::vector<double> prefills;
  std::vector<double> decodes;
};

Times time_passes(engine::Core& core, engine::ForwardPass& pass, const ModelBenchOptions& options) {
  const std::int64_t vocab = core.model.decoder.vocab;
  const auto timed = [&](auto&& work) {
    core.backend->synchronize();
    const auto start = Clock::now();
    work();
    core.backend->synchronize();
    return seconds_since(start);
  };
  // The greedy choices of a random model soon repeat, and with them the experts; with streamed experts the
  // generated text must not repeat.
  Decoding decoding(pass, {.temperature = core.streamed.cache != nullptr ? 1.0 : 0.0}, vocab);
  // The first pass of each kind touches weights, grows scratch memory and records programs.
  if (options.prompt > 0) prefill(pass, options.depth, options.prompt, vocab);
  if (options.generate > 0) {
    decoding.start(options.depth, 0);
    decoding.steps(1);
  }
  Times times;
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    if (options.prompt > 0)
      times.prefills.push_back(timed([&] { prefill(pass, options.depth, options.prompt, vocab); }));
    if (options.generate > 0) {
      decoding.start(options.depth, repetition);
      times.decodes.push_back(timed([&] { decoding.steps(options.generate); }));
    }
  }
  return times;
}

// Memory bandwidth in bytes per second, measured with what the budget leaves besides the minimum of experts.
double peak_within_budget(engine::Core& core) {
  const std::uint64_t spare = core.budget.limit() > 0 ? std::max<std::uint64_t>(1, core.budget.spare()) : 0;
  const engine::placement::Budget::Claim claim = core.budget.claim(spare > 1 ? spare : 0);
  return core.backend->measure_rates(spare).read_bytes_per_second;
}

ModelBenchResult bench(engine::Core& core, engine::ForwardPass& pass, const ModelBenchOptions& options) {
  ModelBenchResult result;
  const std::int64_t groups = groups_of(pass);
  result.peak_gigabytes_per_second = to_double(groups) * peak_within_budget(core) / 1e9;
  if (options.depth > 0) fill_caches(*core.backend, pass.pool());
  const Times times = time_passes(core, pass, options);
  if (!times.prefills.empty()) {
    result.prefill_tokens_per_second = to_double(options.prompt) / median(times.prefills);
    result.prefill_range = range_of(times.prefills, options.prompt);
  }
  if (!times.decodes.empty()) {
    const double step = median(times.decodes) / to_double(options.generate);
    result.decode_tokens_per_second = to_double(options.batch) / step;
    result.decode_range = range_of(times.decodes, options.batch * options.generate);
    result.decode_bytes_per_step = bytes_per_step(core.summary, options, groups);
    result.decode_gigabytes_per_second = result.decode_bytes_per_step / step / 1e9;
    result.percent_of_peak = 100 * result.decode_gigabytes_per_second / result.peak_gigabytes_per_second;
  }
  const double peak = result.peak_gigabytes_per_second * 1e9;
  if (options.profile && options.prompt > 0) {
    const auto ids = prompt_ids(0, std::min(options.prompt, pass.chunk()), core.model.decoder.vocab);
    result.prompt_profile =
        study::profile_prompt(core, pass, {ops::Phase::prefill, {{0, options.depth, ids, 1}}}, peak);
  }
  if (options.profile && options.generate > 0)
    result.profile = study::profile_step(core, pass, options.depth, peak);
  return result;
}

}  // namespace

ModelBenchResult bench_model(Engine& engine, const ModelBenchOptions& options) {
  check(options);
  engine::Core& core = engine::core(engine);
  const std::int64_t chunk = std::min(std::max<std::int64_t>(options.prompt, 1), core.settings.prefill_chunk);
  const std::int64_t capacity = options.depth + std::max(options.prompt, options.generate + 1) + 1;
  const auto group = core.executor->reserve({options.batch, capacity}, chunk);
  return core.executor->run([&] { return bench(core, group->pass, options); });
}

}  // namespace sluice
