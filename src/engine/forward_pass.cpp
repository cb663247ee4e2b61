#include "engine/forward_pass.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace sluice::engine {

namespace {

using ops::DType;

ops::ConstView integers(const ops::Buffer& buffer, std::int64_t count) {
  return {buffer.data(), DType::i32, {count}};
}

// A program that waits for the host here and there.
struct SharedProgram final : ops::Program {
  std::unique_ptr<ops::Program> program;
  layers::HostWork work;

  void run() override {
    program->run();
    for (const std::function<void()>& part : work) part();
  }
};

}  // namespace

std::uint64_t ForwardPass::bytes(const Engine::Impl& impl, const state::StatePool& pool,
                                 std::int64_t tokens) {
  const layers::Decoder& decoder = impl.model.decoder;
  const std::uint64_t activations = decoder.activation_bytes(tokens, pool, impl.activation_type());
  const auto logits = static_cast<std::uint64_t>(pool.slots() * decoder.vocab) * sizeof(float);
  const std::uint64_t states =
      state::StatePool::bytes(decoder.states(), pool.slots(), pool.capacity(), impl.cache_format());
  // Ops copy their inputs as kernels like them: never more than all activations. Logits are also the
  // caller's.
  return states + 2 * activations + 2 * logits;
}

Budget::Claim ForwardPass::claim(Engine::Impl& impl, std::uint64_t bytes) {
  impl.place_experts(bytes);
  return impl.budget.claim(bytes);
}

ForwardPass::ForwardPass(Engine::Impl& impl, std::int64_t slots, std::int64_t capacity, std::int64_t chunk)
    : impl_(impl),
      chunk_(chunk),
      pool_(*impl.backend, decoder().states(), slots, capacity, impl.cache_format()),
      claim_(claim(impl, bytes(impl, pool_, std::max(chunk, slots)))),
      arena_(impl.backend->allocate(
          decoder().activation_bytes(std::max(chunk, slots), pool_, impl.activation_type()))) {
  const auto bytes = static_cast<std::size_t>(std::max(chunk, slots) + 1) * sizeof(std::int32_t);
  for (ops::Buffer* buffer : {&ids_, &positions_, &seq_starts_, &slots_}) *buffer = backend().allocate(bytes);
  std::vector<std::int32_t> counting(static_cast<std::size_t>(slots) + 1);
  std::iota(counting.begin(), counting.end(), 0);
  put(seq_starts_, counting);
  put(slots_, std::span(counting).first(static_cast<std::size_t>(slots)));
  replayed_ = backend().allocate(4 * sizeof(std::int32_t));
  make_room(slots);  // now: a recorded step keeps the address
}

ops::ConstView ForwardPass::put(ops::Buffer& buffer, std::span<const std::int32_t> values) {
  backend().upload(buffer.data(), values.data(), values.size_bytes());
  return integers(buffer, static_cast<std::int64_t>(values.size()));
}

void ForwardPass::make_room(std::int64_t rows) {
  const auto bytes = static_cast<std::size_t>(rows * decoder().vocab) * sizeof(float);
  if (logits_buffer_.bytes() >= bytes) return;
  backend().synchronize();
  logits_buffer_ = backend().allocate(bytes);
  steps_.clear();
  sampled_step_ = nullptr;
}

void ForwardPass::run(layers::Device& device, const layers::Batch& batch, std::int64_t rows) {
  logits_ = rows > 0 ? ops::View(logits_buffer_.data(), DType::f32, {rows, decoder().vocab}) : ops::View{};
  decoder().forward(device, batch, pool_, logits_);
}

layers::Batch ForwardPass::prefill_batch(std::int64_t slot, std::int64_t start,
                                         std::span<const std::int32_t> ids) {
  std::vector<std::int32_t> positions(ids.size());
  std::iota(positions.begin(), positions.end(), static_cast<std::int32_t>(start));
  layers::Batch batch;
  batch.tokens = static_cast<std::int64_t>(ids.size());
  batch.ids = put(ids_, ids);
  batch.positions = put(positions_, positions);
  batch.start = start;
  batch.slot = slot;
  return batch;
}

void ForwardPass::run_prompt(const layers::Batch& batch, std::int64_t rows) {
  backend().set_phase(ops::Phase::prefill);
  layers::Device device(backend(), arena_, impl_.activation_type());
  run(device, batch, rows);
}

void ForwardPass::prefill(std::int64_t slot, std::int64_t start, std::span<const std::int32_t> ids,
                          std::int64_t rows) {
  make_room(rows);
  const layers::Batch batch = prefill_batch(slot, start, ids);
  run_prompt(batch, rows);
}

void ForwardPass::replay(std::int64_t slot, std::int64_t start, std::span<const std::int32_t> ids,
                         std::int64_t rows) {
  make_room(rows);
  layers::Batch batch = prefill_batch(slot, start, ids);
  const std::int32_t sequence[] = {0, static_cast<std::int32_t>(ids.size()), static_cast<std::int32_t>(slot),
                                   static_cast<std::int32_t>(start)};
  const ops::ConstView all = put(replayed_, sequence);
  batch.seq_starts = all.rows(0, 2);
  batch.slots = all.rows(2, 1);
  batch.start = all.rows(3, 1);
  run_prompt(batch, rows);
}

layers::Batch ForwardPass::step_batch(std::int64_t sequences) const {
  layers::Batch batch;
  batch.tokens = sequences;
  batch.ids = integers(ids_, sequences);
  batch.positions = integers(positions_, sequences);
  batch.seq_starts = integers(seq_starts_, sequences + 1);
  batch.slots = integers(slots_, sequences);
  batch.start = integers(positions_, sequences);
  return batch;
}

std::unique_ptr<ops::Program> ForwardPass::record(const std::function<void(layers::Device&)>& body) {
  const auto run = [this, body](layers::HostWork* work) {
    backend().set_phase(ops::Phase::decode);
    layers::Device device(backend(), arena_, impl_.activation_type(), work);
    body(device);
  };
  if (impl_.streamed.tier == nullptr) return backend().record([run] { run(nullptr); });
  auto shared = std::make_unique<SharedProgram>();
  shared->program = backend().record([&] { run(&shared->work); });
  return shared;
}

std::unique_ptr<ops::Program> ForwardPass::record_step(std::int64_t sequences) {
  return record([this, batch = step_batch(sequences), sequences](layers::Device& device) {
    run(device, batch, sequences);
  });
}

void ForwardPass::describe_step(ops::Backend& other, std::int64_t sequences) {
  if (impl_.streamed.tier != nullptr)
    fail(ErrorKind::unsupported, "a step whose experts come over the bus cannot be timed op by op");
  layers::Device device(other, arena_, impl_.activation_type());
  run(device, step_batch(sequences), sequences);
}

void ForwardPass::step(std::span<const Next> tokens) {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> slots;
  for (const Next& next : tokens) {
    ids.push_back(next.id);
    positions.push_back(next.position);
    slots.push_back(next.slot);
  }
  put(ids_, ids);
  put(positions_, positions);
  put(slots_, slots);
  const auto sequences = static_cast<std::int64_t>(tokens.size());
  std::unique_ptr<ops::Program>& program = steps_[sequences];
  if (program == nullptr) program = record_step(sequences);
  program->run();
  logits_ = {logits_buffer_.data(), DType::f32, {sequences, decoder().vocab}};
}

ops::Sample ForwardPass::sample_op(const SamplingSettings& settings, std::int64_t candidates,
                                   std::int64_t rows) const {
  if (settings.repetition_penalty != 1 || settings.presence_penalty != 0 || settings.frequency_penalty != 0 ||
      !settings.logit_bias.empty())
    fail(ErrorKind::unsupported, "penalties and biases are applied by the host's sampler only");
  const ops::View all(logits_buffer_.data(), DType::f32, {rows, decoder().vocab});
  return {.logits = all.columns(0, candidates, {candidates}),
          .positions = ops::View(positions_.data(), DType::i32, {rows}),
          .ids = ops::View(ids_.data(), DType::i32, {rows}),
          .temperature = settings.temperature,
          .top_k = settings.top_k,
          .top_p = settings.top_p,
          .min_p = settings.min_p,
          .seed = static_cast<std::int64_t>(settings.seed)};
}

std::vector<std::int32_t> ForwardPass::read_ids(std::int64_t rows) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(rows));
  backend().download(ids.data(), ids_.data(), ids.size() * sizeof(std::int32_t));
  return ids;
}

std::vector<std::int32_t> ForwardPass::sample(std::span<const std::int32_t> positions,
                                              const SamplingSettings& settings, std::int64_t candidates) {
  const auto rows = static_cast<std::int64_t>(positions.size());
  if (!logits_.present() || logits_.dim(0) != rows)
    fail(ErrorKind::input, "there are logits of {} tokens to sample from, not {}",
         logits_.present() ? logits_.dim(0) : 0, rows);
  put(positions_, positions);
  backend().run(sample_op(settings, candidates, rows));
  return read_ids(rows);
}

std::vector<std::int32_t> ForwardPass::step_and_sample(const SamplingSettings& settings,
                                                       std::int64_t candidates) {
  const std::int64_t rows = logits_.dim(0);
  const ops::Sample op = sample_op(settings, candidates, rows);
  const auto same = [](const ops::Sample& a, const ops::Sample& b) {
    return a.logits.data == b.logits.data && a.logits.shape == b.logits.shape &&
           a.temperature == b.temperature && a.top_k == b.top_k && a.top_p == b.top_p && a.min_p == b.min_p &&
           a.seed == b.seed;
  };
  if (sampled_step_ == nullptr || !same(op, sampled_settings_)) {
    sampled_settings_ = op;
    sampled_step_ = record([this, op, rows](layers::Device& device) {
      run(device, step_batch(rows), rows);
      device.run(op);
    });
  }
  sampled_step_->run();
  return read_ids(rows);
}

void ForwardPass::read_logits(std::vector<float>& to) {
  to.resize(static_cast<std::size_t>(logits_.present() ? logits_.elements() : 0));
  backend().synchronize();
  backend().download(to.data(), logits_.data, to.size() * sizeof(float));
}

}  // namespace sluice::engine
