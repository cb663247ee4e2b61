#include "engine/forward_pass.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/integer_cast.h"

namespace sluice::engine {

namespace {

using ops::DType;

constexpr int kInputs = 4;

ops::ConstView integers(const ops::Buffer& buffer, std::int64_t count) {
  return {buffer.data(), DType::i32, {count}};
}

std::size_t input_bytes(std::int64_t slots) {
  return to_size(slots + 1) * sizeof(std::int32_t);
}

std::size_t logit_bytes(const layers::Decoder& decoder, std::int64_t rows) {
  return to_size(rows * decoder.vocab) * sizeof(float);
}

// A program that waits for the host between ops.
struct SharedProgram final : ops::Program {
  std::unique_ptr<ops::Program> program;
  layers::HostWork work;

  void run() override {
    program->run();
    for (const std::function<void()>& part : work) part();
  }
  std::uint64_t bytes() const override { return program->bytes(); }
};

}  // namespace

std::uint64_t ForwardPass::bytes(const layers::Decoder& decoder, const Settings& settings,
                                 const state::Extent& extent) {
  const std::int64_t rows = extent.at_once();
  return state::StatePool::bytes(decoder.states(), extent, settings.cache) +
         decoder.activation_bytes(rows, settings.cache, settings.activations) + logit_bytes(decoder, rows) +
         kInputs * input_bytes(rows) + SampleSlots::bytes(rows, decoder.vocab);
}

std::uint64_t ForwardPass::bytes() const {
  const state::Extent& extent = pool_.extent();
  return bytes(decoder(), core_.settings, extent) -
         state::StatePool::bytes(decoder().states(), extent, core_.settings.cache) + pool_.bytes() +
         prompt_logits_.bytes() + samplers_.grown_bytes();
}

// One program per number of sequences of a step, and two that also sample the next token.
std::uint64_t ForwardPass::program_bytes(const layers::Decoder& decoder, const Settings& settings,
                                         const state::Extent& extent) {
  constexpr std::uint64_t kKinds = 3;
  const std::uint64_t each = settings.program_bytes + settings.program_layer_bytes * decoder.layers.size();
  return kKinds * extent.at_once() * each;
}

std::uint64_t ForwardPass::program_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [kind, program] : sampled_steps_) sum += program->bytes();
  for (const auto& [sequences, program] : steps_) sum += program->bytes();
  return sum;
}

std::uint64_t ForwardPass::claimed(const layers::Decoder& decoder, const Settings& settings,
                                   const state::Extent& extent) {
  // The memory of growing tensors is rounded up, tensor by tensor.
  const state::StateBytes states = state::bytes_of(decoder.states(), settings.cache);
  const std::uint64_t rounded = extent.growing ? (settings.growth - 1) * (states.tensors + 1) : 0;
  return bytes(decoder, settings, extent) + rounded + program_bytes(decoder, settings, extent) +
         (extent.growing ? 0 : logit_bytes(decoder, extent.slots));
}

std::uint64_t ForwardPass::slot_bytes(const layers::Decoder& decoder, const Settings& settings,
                                      const state::Extent& extent, std::int64_t capacity) {
  return state::StatePool::slot_bytes(decoder.states(), extent, settings.cache, capacity);
}

void ForwardPass::claim() {
  const state::Extent& extent = pool_.extent();
  std::uint64_t wanted = claimed(decoder(), core_.settings, extent) + prompt_logits_.bytes();
  if (extent.growing)
    wanted += pool_.promised_bytes() + to_size(pool_.open_slots()) * logit_bytes(decoder(), 1);
  claim_.change(wanted);
}

void ForwardPass::open(std::int32_t slot, std::int64_t capacity) {
  const state::Extent& extent = pool_.extent();
  if (!extent.growing) return pool_.open(slot, capacity);
  const std::int64_t tokens = std::min(chunk_, capacity);
  const std::uint64_t own =
      slot_bytes(decoder(), core_.settings, extent, capacity) + logit_bytes(decoder(), 1);
  core_.place_experts(workspace_.growth(tokens) + own);
  workspace_.grow(tokens, own);
  try {
    pool_.promise(slot, capacity);
    claim();
    pool_.open(slot, capacity);
  } catch (const Error&) {
    close(slot);
    throw;
  }
}

void ForwardPass::close(std::int32_t slot) {
  forget(slot);
  pool_.release(slot);
  if (pool_.extent().growing) claim();
}

ForwardPass::ForwardPass(Core& core, Workspace& workspace, const state::Extent& extent, std::int64_t chunk)
    : core_(core),
      workspace_(workspace),
      chunk_(chunk),
      claim_(core.budget.claim(claimed(core.model.decoder, core.settings, extent))),
      pool_(*core.backend, decoder().states(), extent, core.settings.cache,
            core.options.share ? core.options.share->open(extent, chunk) : nullptr),
      arena_(core.backend->allocate(
          decoder().activation_bytes(extent.at_once(), core.settings.cache, core.settings.activations))),
      samplers_(*core.backend, extent.at_once(), decoder().vocab) {
  const std::int64_t rows = extent.at_once();
  for (ops::Buffer* buffer : {&ids_, &positions_, &slots_, &seq_starts_})
    *buffer = backend().allocate(input_bytes(rows));
  std::vector<std::int32_t> counting(to_size(rows) + 1);
  std::iota(counting.begin(), counting.end(), 0);
  backend().upload(seq_starts_.data(), counting.data(), counting.size() * sizeof(std::int32_t));
  step_logits_ = backend().allocate(logit_bytes(decoder(), rows));
}

ops::View ForwardPass::place_logits(std::int64_t rows) {
  const std::size_t bytes = logit_bytes(decoder(), rows);
  if (rows == 0 || !decoder().lm_head.present()) return {};  // the head is on another node
  if (rows > at_once() && prompt_logits_.bytes() < bytes) {
    backend().synchronize();
    prompt_logits_ = {};
    prompt_logits_ = backend().allocate(bytes);
    claim();
  }
  return {
      rows > at_once() ? prompt_logits_.data() : step_logits_.data(), DType::f32, {rows, decoder().vocab}};
}

void ForwardPass::run(layers::Device& device, const layers::Pass& pass, std::int64_t rows) {
  logits_ = place_logits(rows);
  decoder().forward(device, pass, pool_.layers(), logits_);
}

void ForwardPass::begin(const Batch& batch) {
  if (core_.options.share) number_ = core_.options.share->begin(pool_.replica(), batch);
}

void ForwardPass::make_writable(const Batch& batch) {
  for (const Batch::Sequence& sequence : batch.sequences)
    pool_.make_writable(sequence.slot, sequence.past, std::ssize(sequence.ids));
}

void ForwardPass::run(const Batch& batch) {
  make_writable(batch);
  leave_logits(batch.sequences[0].slot);
  begin(batch);
  batch.phase == ops::Phase::decode ? run_step(batch) : run_prompt(batch);
  for (const Batch::Sequence& sequence : batch.sequences)
    logit_slots_.insert(logit_slots_.end(), to_size(sequence.rows), sequence.slot);
}

void ForwardPass::fork(std::int32_t from, std::int32_t to, std::int64_t rows) {
  const auto known = std::find(logit_slots_.begin(), logit_slots_.end(), from);
  const std::int64_t count = std::ssize(logit_slots_);
  if (known == logit_slots_.end() || count == at_once() || logits_.dim(0) != count)
    fail(ErrorKind::internal, "slot {} has no logits to share, or there is no room for more", from);
  pool_.fork(from, to, rows);
  const ops::View all = place_logits(count + 1);
  backend().copy(all[count].data, all[known - logit_slots_.begin()].data, logit_bytes(decoder(), 1));
  logits_ = all;
  logit_slots_.push_back(to);
}

// One entry per snapshot place of the pool; -1 leaves it unchanged.
ops::ConstView ForwardPass::put_saves(const Batch& batch) {
  if (batch.saves.empty()) return {};
  std::vector<std::int32_t> at(to_size(pool_.extent().snapshots), -1);
  for (const Batch::Save& save : batch.saves) at.at(to_size(save.place)) = to_int(save.tokens);
  return workspace_.put_saves(at);
}

// Several sequences are addressed by their slots in the pool; a single one uses a view of its slot.
layers::Pass ForwardPass::prompt_pass(const Batch& batch) {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> seq_starts{0};
  std::vector<std::int32_t> slots;
  std::vector<std::int32_t> starts;
  layers::Pass pass;
  for (const Batch::Sequence& sequence : batch.sequences) {
    ids.insert(ids.end(), sequence.ids.begin(), sequence.ids.end());
    for (std::size_t i = 0; i < sequence.ids.size(); ++i)
      positions.push_back(static_cast<std::int32_t>(sequence.past) + static_cast<std::int32_t>(i));
    seq_starts.push_back(ids.size());
    slots.push_back(sequence.slot);
    starts.push_back(sequence.past);
    for (std::int64_t row = seq_starts.back() - sequence.rows; row < seq_starts.back(); ++row)
      pass.logit_rows.push_back(row);
  }
  pass.tokens = batch.tokens();
  pass.replayed = batch.replayed;
  pass.number = number_;
  pass.ids = workspace_.put_ids(ids);
  pass.positions = workspace_.put_positions(positions);
  pass.save_at = put_saves(batch);
  pass.saved_behind = pool_.slots();
  if (batch.sequences.size() == 1 && !batch.replayed) {
    pass.slot = slots[0];
    pass.start = std::int64_t{starts[0]};
    pass.page_table = pool_.page_table()[slots[0]];
    return pass;
  }
  pass.seq_starts = workspace_.put_seq_starts(seq_starts);
  pass.slots = workspace_.put_slots(slots);
  pass.start = workspace_.put_starts(starts);
  pass.page_table = pool_.page_table();
  return pass;
}

void ForwardPass::run_prompt(const Batch& batch) {
  if (batch.tokens() > core_.settings.prefill_chunk)
    fail(ErrorKind::internal, "a pass of {} tokens; it may have {}", batch.tokens(),
         core_.settings.prefill_chunk);
  workspace_.grow(batch.tokens(), 0);
  const layers::Pass pass = prompt_pass(batch);
  layers::Device device(backend(), workspace_.arena(), core_.settings.activations);
  run(device, pass, batch.rows());
}

layers::Pass ForwardPass::step_pass(std::int64_t sequences) const {
  layers::Pass pass;
  pass.phase = ops::Phase::decode;
  pass.number = number_;
  pass.tokens = sequences;
  pass.ids = integers(ids_, sequences);
  pass.positions = integers(positions_, sequences);
  pass.seq_starts = integers(seq_starts_, sequences + 1);
  pass.slots = integers(slots_, sequences);
  pass.start = integers(positions_, sequences);
  pass.page_table = pool_.page_table();
  return pass;
}

// Inputs that a program left in place are not written again.
void ForwardPass::put_step(std::span<const Next> tokens) {
  if (std::ssize(tokens) > at_once())
    fail(ErrorKind::internal, "a step of {} sequences where {} compute at once", tokens.size(), at_once());
  if (std::equal(tokens.begin(), tokens.end(), in_place_.begin(), in_place_.end())) return;
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> slots;
  for (const Next& next : tokens) {
    ids.push_back(next.id);
    positions.push_back(next.position);
    slots.push_back(next.slot);
  }
  backend().upload(ids_.data(), ids.data(), ids.size() * sizeof(std::int32_t));
  backend().upload(positions_.data(), positions.data(), positions.size() * sizeof(std::int32_t));
  backend().upload(slots_.data(), slots.data(), slots.size() * sizeof(std::int32_t));
  in_place_.assign(tokens.begin(), tokens.end());
}

std::unique_ptr<ops::Program> ForwardPass::record(const std::function<void(layers::Device&)>& body) {
  const auto run = [this, body](layers::HostWork* work) {
    layers::Device device(backend(), arena_, core_.settings.activations, work);
    body(device);
  };
  // Rows from other nodes are received anew in each step.
  if (core_.options.share) return backend().Backend::record([run] { run(nullptr); });
  if (core_.streamed.tier == nullptr) return backend().record([run] { run(nullptr); });
  auto shared = std::make_unique<SharedProgram>();
  shared->program = backend().record([&] { run(&shared->work); });
  return shared;
}

// Rejects configurations in which work between the ops matters, too.
void ForwardPass::refuse_to_describe() const {
  if (core_.streamed.tier != nullptr)
    fail(ErrorKind::unsupported, "a step whose experts come over the bus cannot be timed op by op");
  if (core_.options.share)
    fail(ErrorKind::unsupported, "a step that several nodes share cannot be timed op by op");
}

void ForwardPass::describe_step(ops::Backend& other, std::int64_t sequences) {
  refuse_to_describe();
  layers::Device device(other, arena_, core_.settings.activations);
  run(device, step_pass(sequences), sequences);
}

void ForwardPass::describe_prompt(ops::Backend& other, const Batch& batch) {
  refuse_to_describe();
  workspace_.grow(batch.tokens(), 0);
  const layers::Pass pass = prompt_pass(batch);
  layers::Device device(other, workspace_.arena(), core_.settings.activations);
  run(device, pass, batch.rows());
}

void ForwardPass::put_step(const Batch& batch) {
  std::vector<Next> tokens;
  for (const Batch::Sequence& sequence : batch.sequences) {
    if (sequence.ids.size() != 1 || sequence.rows != 1)
      fail(ErrorKind::internal, "a step takes one token of each sequence and gives its logits");
    tokens.push_back({sequence.slot, static_cast<std::int32_t>(sequence.past), sequence.ids[0]});
  }
  put_step(tokens);
}

void ForwardPass::run_step(const Batch& batch) {
  put_step(batch);
  const auto sequences = std::ssize(batch.sequences);
  std::unique_ptr<ops::Program>& program = steps_[sequences];
  if (program == nullptr)
    program =
        record([this, sequences](layers::Device& device) { run(device, step_pass(sequences), sequences); });
  program->run();
  logits_ = place_logits(sequences);
}

ForwardPass::Underway ForwardPass::depart(const Batch& batch) {
  make_writable(batch);
  begin(batch);
  put_step(batch);
  layers::Device device(backend(), arena_, core_.settings.activations);
  decoder().forward(device, step_pass(std::ssize(batch.sequences)), pool_.layers(), {});
  Underway step{.number = number_, .slots = {}};
  for (const Batch::Sequence& sequence : batch.sequences) step.slots.push_back(sequence.slot);
  return step;
}

void ForwardPass::arrive(const Underway& step) {
  leave_logits(step.slots[0]);
  logits_ = place_logits(std::ssize(step.slots));
  layers::Pass pass;
  pass.phase = ops::Phase::decode;
  pass.number = step.number;
  pass.tokens = std::ssize(step.slots);
  layers::Device device(backend(), arena_, core_.settings.activations);
  decoder().arrive(device, pass, logits_);
  logit_slots_ = step.slots;
}

ops::Sample ForwardPass::sample_op(std::span<const Next> tokens, std::span<const SampleRequest> requests,
                                   std::int64_t candidates) {
  if (requests.size() != tokens.size())
    fail(ErrorKind::internal, "{} requests for {} sequences", requests.size(), tokens.size());
  std::vector<std::int64_t> slots;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    SampleRequest request = requests[i];
    if (pool_.extent().growing)  // the row may belong to another sequence
      request.follows &= std::exchange(sampled_slot_, tokens[i].slot) == tokens[i].slot;
    slots.push_back(sampler(tokens[i].slot));
    samplers_.set(slots.back(), request, candidates);
  }
  const auto rows = std::ssize(tokens);
  return samplers_.op({.logits = ops::View(step_logits_.data(), DType::f32, {rows, decoder().vocab}),
                       .positions = ops::View(positions_.data(), DType::i32, {rows}),
                       .ids = ops::View(ids_.data(), DType::i32, {rows}),
                       .slots = integers(pool_.extent().growing ? seq_starts_ : slots_, rows)},
                      candidates, samplers_.plain(slots));
}

// The op advanced the positions of `before` and stored the chosen ids beside them.
std::vector<SampledToken> ForwardPass::read_choices(std::span<const Next> before) {
  std::vector<std::int64_t> slots;
  for (const Next& next : before) slots.push_back(sampler(next.slot));
  std::vector<SampledToken> chosen = samplers_.read(integers(ids_, std::ssize(slots)), slots);
  for (std::size_t i = 0; i < chosen.size(); ++i)
    in_place_.push_back({before[i].slot, before[i].position + 1, chosen[i].id});
  return chosen;
}

std::vector<SampledToken> ForwardPass::sample(std::span<const Next> last,
                                              std::span<const SampleRequest> requests,
                                              std::int64_t candidates) {
  const bool there = std::equal(last.begin(), last.end(), logit_slots_.begin(), logit_slots_.end(),
                                [](const Next& next, std::int32_t slot) { return next.slot == slot; });
  if (!there) fail(ErrorKind::internal, "the logits to choose from are those of other sequences");
  const ops::Sample op = sample_op(last, requests, candidates);
  put_step(last);
  in_place_.clear();
  backend().run(op);
  return read_choices(last);
}

std::vector<SampledToken> ForwardPass::step_and_sample(std::span<const Next> tokens,
                                                       std::span<const SampleRequest> requests,
                                                       std::int64_t candidates) {
  const auto rows = std::ssize(tokens);
  const ops::Sample op = sample_op(tokens, requests, candidates);
  Batch batch{ops::Phase::decode, {}};
  for (const Next& next : tokens)
    batch.sequences.push_back({next.slot, next.position, std::span(&next.id, 1), 1});
  make_writable(batch);
  leave_logits(tokens[0].slot);
  begin(batch);
  put_step(tokens);
  in_place_.clear();
  const std::pair from(candidates, samplers_.version());
  if (std::exchange(sampled_from_, from) != from) sampled_steps_.clear();
  const bool plain = !op.top_ids.present();
  std::unique_ptr<ops::Program>& program = sampled_steps_[{rows, plain}];
  if (program == nullptr)
    program = record([this, op, rows](layers::Device& device) {
      run(device, step_pass(rows), rows);
      device.run(op);
    });
  program->run();
  logits_ = place_logits(rows);
  for (const Next& next : tokens) logit_slots_.push_back(next.slot);
  return read_choices(tokens);
}

void ForwardPass::read_logits(std::vector<float>& to) {
  to.resize(to_size(logits_.present() ? logits_.elements() : 0));
  backend().synchronize();
  backend().download(to.data(), logits_.data, to.size() * sizeof(float));
  logits_read_ = true;
}

void ForwardPass::take_logits(std::int32_t slot, std::vector<float>& to) {
  if (logit_slots_ == std::vector{slot}) return read_logits(to);
  const auto kept = kept_logits_.find(slot);
  to = kept == kept_logits_.end() ? std::vector<float>() : std::move(kept->second);
  if (kept != kept_logits_.end()) kept_logits_.erase(kept);
}

void ForwardPass::leave_logits(std::int32_t next) {
  const bool wanted = pool_.extent().growing && !logits_read_ && !logit_slots_.empty() && logits_.present();
  if (wanted && logit_slots_[0] != next) read_logits(kept_logits_[logit_slots_[0]]);
  kept_logits_.erase(next);
  logit_slots_.clear();
  logits_read_ = false;
}

void ForwardPass::put_logits(std::int32_t slot, std::span<const float> from) {
  leave_logits(slot);
  logits_ = place_logits(1);
  backend().upload(logits_.data, from.data(), from.size_bytes());
  logit_slots_ = {slot};
  logits_read_ = true;
}

void ForwardPass::forget(std::int32_t slot) {
  if (std::find(logit_slots_.begin(), logit_slots_.end(), slot) != logit_slots_.end()) logit_slots_.clear();
  kept_logits_.erase(slot);
}

}  // namespace sluice::engine
