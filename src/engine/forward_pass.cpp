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

std::uint64_t ForwardPass::bytes(const Core& core, const state::Extent& extent, std::int64_t tokens) {
  const layers::Decoder& decoder = core.model.decoder;
  const std::uint64_t activations =
      decoder.activation_bytes(tokens, core.settings.cache, core.settings.activations);
  const auto logits = static_cast<std::uint64_t>(extent.slots * decoder.vocab) * sizeof(float);
  const std::uint64_t states = state::bytes_of(decoder.states(), extent, core.settings.cache);
  // Ops copy their inputs as kernels like them: never more than all activations. Logits are also the
  // caller's.
  return states + 2 * activations + 2 * logits;
}

Budget::Claim ForwardPass::claim(Core& core, std::uint64_t bytes) {
  core.place_experts(bytes);
  return core.budget.claim(bytes);
}

ForwardPass::ForwardPass(Core& core, std::int64_t slots, std::int64_t capacity, std::int64_t chunk)
    : core_(core),
      chunk_(chunk),
      pool_(*core.backend, decoder().states(), {slots, capacity}, core.settings.cache),
      claim_(claim(core, bytes(core, {slots, capacity}, std::max(chunk, slots)))),
      arena_(core.backend->allocate(decoder().activation_bytes(std::max(chunk, slots), core.settings.cache,
                                                               core.settings.activations))) {
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

void ForwardPass::run(layers::Device& device, const layers::Pass& pass, std::int64_t rows) {
  logits_ = rows > 0 ? ops::View(logits_buffer_.data(), DType::f32, {rows, decoder().vocab}) : ops::View{};
  decoder().forward(device, pass, pool_.layers(), logits_);
}

layers::Pass ForwardPass::prefill_pass(std::int64_t slot, std::int64_t start,
                                       std::span<const std::int32_t> ids) {
  std::vector<std::int32_t> positions(ids.size());
  std::iota(positions.begin(), positions.end(), static_cast<std::int32_t>(start));
  layers::Pass pass;
  pass.tokens = static_cast<std::int64_t>(ids.size());
  pass.ids = put(ids_, ids);
  pass.positions = put(positions_, positions);
  pass.start = start;
  pass.slot = slot;
  return pass;
}

void ForwardPass::run_prompt(const layers::Pass& pass, std::int64_t rows) {
  layers::Device device(backend(), arena_, core_.settings.activations);
  run(device, pass, rows);
}

void ForwardPass::prefill(std::int64_t slot, std::int64_t start, std::span<const std::int32_t> ids,
                          std::int64_t rows) {
  make_room(rows);
  const layers::Pass pass = prefill_pass(slot, start, ids);
  run_prompt(pass, rows);
}

void ForwardPass::replay(std::int64_t slot, std::int64_t start, std::span<const std::int32_t> ids,
                         std::int64_t rows) {
  make_room(rows);
  layers::Pass pass = prefill_pass(slot, start, ids);
  const std::int32_t sequence[] = {0, static_cast<std::int32_t>(ids.size()), static_cast<std::int32_t>(slot),
                                   static_cast<std::int32_t>(start)};
  const ops::ConstView all = put(replayed_, sequence);
  pass.replayed = true;
  pass.seq_starts = all.rows(0, 2);
  pass.slots = all.rows(2, 1);
  pass.start = all.rows(3, 1);
  run_prompt(pass, rows);
}

layers::Pass ForwardPass::step_pass(std::int64_t sequences) const {
  layers::Pass pass;
  pass.phase = ops::Phase::decode;
  pass.tokens = sequences;
  pass.ids = integers(ids_, sequences);
  pass.positions = integers(positions_, sequences);
  pass.seq_starts = integers(seq_starts_, sequences + 1);
  pass.slots = integers(slots_, sequences);
  pass.start = integers(positions_, sequences);
  return pass;
}

std::unique_ptr<ops::Program> ForwardPass::record(const std::function<void(layers::Device&)>& body) {
  const auto run = [this, body](layers::HostWork* work) {
    layers::Device device(backend(), arena_, core_.settings.activations, work);
    body(device);
  };
  if (core_.streamed.tier == nullptr) return backend().record([run] { run(nullptr); });
  auto shared = std::make_unique<SharedProgram>();
  shared->program = backend().record([&] { run(&shared->work); });
  return shared;
}

std::unique_ptr<ops::Program> ForwardPass::record_step(std::int64_t sequences) {
  return record([this, pass = step_pass(sequences), sequences](layers::Device& device) {
    run(device, pass, sequences);
  });
}

void ForwardPass::describe_step(ops::Backend& other, std::int64_t sequences) {
  if (core_.streamed.tier != nullptr)
    fail(ErrorKind::unsupported, "a step whose experts come over the bus cannot be timed op by op");
  layers::Device device(other, arena_, core_.settings.activations);
  run(device, step_pass(sequences), sequences);
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
      run(device, step_pass(rows), rows);
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
