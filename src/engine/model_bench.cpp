#include "sluice/model_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "base/error.h"
#include "base/machine_peak.h"
#include "engine/engine_impl.h"

namespace sluice {

namespace {

using Clock = std::chrono::steady_clock;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// Sequences that run in step: their states, and the small device arrays that say who is where.
class BatchRunner {
 public:
  BatchRunner(Engine::Impl& impl, std::int64_t sequences, std::int64_t capacity, std::int64_t chunk)
      : impl_(impl),
        sequences_(sequences),
        pool_(*impl.backend, decoder().states(), sequences, capacity, impl.cache_type()),
        arena_(impl.backend->allocate(decoder().activation_bytes(std::max(chunk, sequences), pool_))),
        logits_(
            impl.backend->allocate(static_cast<std::size_t>(sequences * decoder().vocab) * sizeof(float))) {
    for (auto* buffer : {&ids_, &positions_, &starts_, &seq_starts_, &slots_})
      *buffer = impl.backend->allocate(static_cast<std::size_t>(std::max(chunk, sequences) + 1) *
                                       sizeof(std::int32_t));
  }

  // Gives caches contents that are neither NaN nor subnormal, as a real context has.
  void fill_caches() {
    std::vector<float> noise(4096);
    for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = std::sin(static_cast<float>(i) * 0.7f + 0.3f);
    std::vector<ops::BFloat16> rounded(noise.size());
    for (std::size_t i = 0; i < noise.size(); ++i) rounded[i] = ops::to_bfloat16(noise[i]);
    for (const state::LayerState& layer : pool_.layers()) {
      if (layer.recurrent) continue;
      for (const ops::View& cache : {layer.first, layer.second}) {
        const std::size_t bytes = static_cast<std::size_t>(cache.elements()) * size_bytes(cache.dtype);
        const void* from =
            cache.dtype == ops::DType::f32 ? static_cast<const void*>(noise.data()) : rounded.data();
        const std::size_t block = noise.size() * size_bytes(cache.dtype);
        for (std::size_t at = 0; at < bytes; at += block)
          impl_.backend->upload(static_cast<std::byte*>(cache.data) + at, from, std::min(block, bytes - at));
      }
    }
  }

  // One pass over `tokens` of sequence 0.
  void prefill(std::int64_t start, std::int64_t tokens) {
    std::vector<std::int32_t> ids;
    std::vector<std::int32_t> positions;
    for (std::int64_t i = 0; i < tokens; ++i) {
      ids.push_back(token(start + i));
      positions.push_back(static_cast<std::int32_t>(start + i));
    }
    layers::Batch batch;
    batch.tokens = tokens;
    batch.ids = put(ids_, ids);
    batch.positions = put(positions_, positions);
    batch.start = start;
    run(batch, 1);
  }

  // One token of every sequence, all at the same position.
  void step(std::int64_t position) {
    std::vector<std::int32_t> ids;
    std::vector<std::int32_t> starts;
    std::vector<std::int32_t> seq_starts;
    std::vector<std::int32_t> slots;
    for (std::int64_t b = 0; b <= sequences_; ++b) seq_starts.push_back(static_cast<std::int32_t>(b));
    for (std::int64_t b = 0; b < sequences_; ++b) {
      ids.push_back(token(position * sequences_ + b));
      starts.push_back(static_cast<std::int32_t>(position));
      slots.push_back(static_cast<std::int32_t>(b));
    }
    layers::Batch batch;
    batch.tokens = sequences_;
    batch.ids = put(ids_, ids);
    batch.positions = put(positions_, starts);
    if (sequences_ == 1) {
      batch.start = position;
    } else {
      batch.seq_starts = put(seq_starts_, seq_starts);
      batch.slots = put(slots_, slots);
      batch.start = put(starts_, starts);
    }
    run(batch, sequences_);
  }

 private:
  const layers::Decoder& decoder() const { return impl_.model.decoder; }

  // Spread over the vocabulary, so that experts are chosen as different texts choose them.
  std::int32_t token(std::int64_t i) const {
    return static_cast<std::int32_t>(static_cast<std::uint64_t>(i * 2654435761) %
                                     static_cast<std::uint64_t>(decoder().vocab));
  }

  ops::ConstView put(ops::Buffer& buffer, const std::vector<std::int32_t>& values) {
    impl_.backend->upload(buffer.data(), values.data(), values.size() * sizeof(std::int32_t));
    return {buffer.data(), ops::DType::i32, {static_cast<std::int64_t>(values.size())}};
  }

  void run(const layers::Batch& batch, std::int64_t rows) {
    layers::Device device(*impl_.backend, arena_);
    decoder().forward(device, batch, pool_, {logits_.data(), ops::DType::f32, {rows, decoder().vocab}});
    impl_.backend->synchronize();
  }

  Engine::Impl& impl_;
  std::int64_t sequences_;
  state::StatePool pool_;
  layers::Arena arena_;
  ops::Buffer logits_;
  ops::Buffer ids_, positions_, starts_, seq_starts_, slots_;
};

// Bytes one decode step must move: dense weights once, of the experts the share that so many tokens are
// expected to touch, recurrent states read and written, caches read.
double bytes_per_step(const ModelSummary& model, const ModelBenchOptions& options) {
  double experts = 0;
  for (const ModelSummary::Part& part : model.parts)
    if (part.kind == "experts") experts = static_cast<double>(part.bytes);
  const double one = model.experts > 0
                         ? static_cast<double>(model.experts_per_token) / static_cast<double>(model.experts)
                         : 0;
  const double touched = 1 - std::pow(1 - one, static_cast<double>(options.batch));
  const double dense = static_cast<double>(model.bytes_per_token) - experts * one;
  const double caches = static_cast<double>(model.cache_bytes_per_position) *
                        (static_cast<double>(options.depth) + static_cast<double>(options.generate) / 2);
  return dense + experts * touched +
         static_cast<double>(options.batch) * (2.0 * static_cast<double>(model.state_bytes) + caches);
}

void check(const ModelBenchOptions& o) {
  if (o.prompt < 0 || o.generate < 0 || o.depth < 0 || o.batch < 1 || o.repetitions < 1)
    fail(ErrorKind::input,
         "bench: prompt {}, generate {} and depth {} must not be negative, batch {} and repetitions {} "
         "at least 1",
         o.prompt, o.generate, o.depth, o.batch, o.repetitions);
}

}  // namespace

ModelBenchResult bench_model(Engine& engine, const ModelBenchOptions& options) {
  check(options);
  Engine::Impl& impl = engine.impl();
  ModelBenchResult result;
  {
    const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    ThreadPool pool(impl.options.threads > 0 ? impl.options.threads : cores);
    result.peak_gigabytes_per_second = measure_read_bandwidth(pool) / 1e9;
  }
  const std::int64_t chunk = std::min(std::max<std::int64_t>(options.prompt, 1), impl.options.prefill_chunk);
  const std::int64_t capacity = options.depth + std::max(options.prompt, options.generate) + 1;
  BatchRunner runner(impl, options.batch, capacity, chunk);
  if (options.depth > 0) runner.fill_caches();
  std::vector<double> prefill;
  std::vector<double> decode;
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    if (options.prompt > 0) {
      const auto start = Clock::now();
      for (std::int64_t at = 0; at < options.prompt; at += chunk)
        runner.prefill(options.depth + at, std::min(chunk, options.prompt - at));
      prefill.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    if (options.generate > 0) {
      if (repetition == 0) runner.step(options.depth);  // touch what decoding touches
      const auto start = Clock::now();
      for (std::int64_t i = 0; i < options.generate; ++i) runner.step(options.depth + i);
      decode.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
  }
  if (!prefill.empty())
    result.prefill_tokens_per_second = static_cast<double>(options.prompt) / median(prefill);
  if (!decode.empty()) {
    const double step = median(decode) / static_cast<double>(options.generate);
    result.decode_tokens_per_second = static_cast<double>(options.batch) / step;
    result.decode_bytes_per_step = bytes_per_step(engine.summary(), options);
    result.decode_gigabytes_per_second = result.decode_bytes_per_step / step / 1e9;
    result.percent_of_peak = 100 * result.decode_gigabytes_per_second / result.peak_gigabytes_per_second;
  }
  return result;
}

}  // namespace sluice
