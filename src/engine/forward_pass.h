// Running a model over the sequences in the slots of one state pool: prompts in chunks, generated tokens in
// steps.
#pragma once

#include <map>

#include "engine/core.h"
#include "layers/pass.h"
#include "sluice/sampling.h"
#include "state/state_pool.h"

namespace sluice::engine {

class ForwardPass {
 public:
  // `chunk` is the most tokens of one prefill.
  ForwardPass(Core& core, std::int64_t slots, std::int64_t capacity, std::int64_t chunk);

  // What passes over up to `tokens` tokens of such sequences keep in memory.
  static std::uint64_t bytes(const Core& core, const state::Extent& extent, std::int64_t tokens);

  state::StatePool& pool() { return pool_; }
  std::int64_t chunk() const { return chunk_; }

  // Prompt tokens of the sequence in `slot`, behind `start` past ones. Afterwards logits() are those of the
  // last `rows` tokens.
  void prefill(std::int64_t slot, std::int64_t start, std::span<const std::int32_t> ids, std::int64_t rows);

  // The same with every row read from the caches, the tokens' own too, as if each had been generated: packed
  // caches show their full error.
  void replay(std::int64_t slot, std::int64_t start, std::span<const std::int32_t> ids, std::int64_t rows);

  // A generated token of one sequence: it goes to `position`.
  struct Next {
    std::int32_t slot = 0;
    std::int32_t position = 0;
    std::int32_t id = 0;
  };
  // One token of every sequence named, in one program that is recorded once for that many sequences.
  void step(std::span<const Next> tokens);

  // Chooses a token for the position behind each of `positions` from the rows of logits().
  std::vector<std::int32_t> sample(std::span<const std::int32_t> positions, const SamplingSettings& settings,
                                   std::int64_t candidates);
  // Appends what was chosen last to the first slots and chooses again, in one program.
  std::vector<std::int32_t> step_and_sample(const SamplingSettings& settings, std::int64_t candidates);

  // Names the ops of a step of the first so many slots to another backend, over this pass's memory.
  void describe_step(ops::Backend& other, std::int64_t sequences);

  // F32 [rows, vocab] in the backend's memory.
  const ops::View& logits() const { return logits_; }
  void read_logits(std::vector<float>& to);

 private:
  static Budget::Claim claim(Core& core, std::uint64_t bytes);
  const layers::Decoder& decoder() const { return core_.model.decoder; }
  ops::Backend& backend() { return *core_.backend; }
  ops::ConstView put(ops::Buffer& buffer, std::span<const std::int32_t> values);
  layers::Pass prefill_pass(std::int64_t slot, std::int64_t start, std::span<const std::int32_t> ids);
  layers::Pass step_pass(std::int64_t sequences) const;
  void run(layers::Device& device, const layers::Pass& pass, std::int64_t rows);
  void run_prompt(const layers::Pass& pass, std::int64_t rows);
  // Programs of the ops `body` runs, with the host's work between them.
  std::unique_ptr<ops::Program> record(const std::function<void(layers::Device&)>& body);
  void make_room(std::int64_t rows);
  std::unique_ptr<ops::Program> record_step(std::int64_t sequences);
  ops::Sample sample_op(const SamplingSettings& settings, std::int64_t candidates, std::int64_t rows) const;
  std::vector<std::int32_t> read_ids(std::int64_t rows);

  Core& core_;
  std::int64_t chunk_;
  state::StatePool pool_;
  Budget::Claim claim_;
  layers::Arena arena_;
  ops::Buffer logits_buffer_;
  ops::View logits_;
  ops::Buffer ids_;
  ops::Buffer positions_;
  ops::Buffer seq_starts_;  // 0, 1, 2, ...: a step has one token a sequence
  ops::Buffer slots_;
  ops::Buffer replayed_;  // sequence starts, slot and start of a replay
  std::map<std::int64_t, std::unique_ptr<ops::Program>> steps_;  // by number of sequences
  std::unique_ptr<ops::Program> sampled_step_;                   // for the settings below
  ops::Sample sampled_settings_;
};

}  // namespace sluice::engine
