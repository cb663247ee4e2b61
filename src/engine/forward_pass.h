// A group of slots and how the model runs over the sequences in them: prompts as they come, generated tokens
// as recorded programs.
#pragma once

#include <map>

#include "engine/batch.h"
#include "engine/core.h"
#include "engine/sample_slots.h"
#include "engine/workspace.h"
#include "state/state_pool.h"

namespace sluice::engine {

// Everything is done by the executor's thread.
class ForwardPass {
 public:
  // `chunk` is the most tokens of one prompt pass.
  ForwardPass(Core& core, Workspace& workspace, const state::Extent& extent, std::int64_t chunk);

  // What such a group takes on the backend when it is made, and what its recorded programs take at most.
  static std::uint64_t bytes(const layers::Decoder& decoder, const Settings& settings,
                             const state::Extent& extent);
  static std::uint64_t program_bytes(const layers::Decoder& decoder, const Settings& settings,
                                     const state::Extent& extent);
  // Now.
  std::uint64_t bytes() const;
  std::uint64_t program_bytes() const;
  // Both at most, with the logits that its callers keep.
  static std::uint64_t claimed(const layers::Decoder& decoder, const Settings& settings,
                               const state::Extent& extent);
  // What one sequence of up to so many tokens comes to take of a growing group.
  static std::uint64_t slot_bytes(const layers::Decoder& decoder, const Settings& settings,
                                  const state::Extent& extent, std::int64_t capacity);

  state::StatePool& pool() { return pool_; }
  std::int64_t slots() const { return pool_.slots(); }
  std::int64_t at_once() const { return pool_.extent().at_once(); }
  std::int64_t chunk() const { return chunk_; }

  // Makes a slot ready for a sequence of up to so many tokens; refused where the budget has no room for it.
  void open(std::int32_t slot, std::int64_t capacity);
  // Gives back what it took.
  void close(std::int32_t slot);

  // Runs the batch. Afterwards logits() are the rows that it asks for, sequence by sequence. Generated tokens
  // run a program that is recorded once for that many sequences.
  void run(const Batch& batch);

  // Where nodes hold layers one behind the other, so many steps of different sequences keep all at work.
  std::int64_t stages() const { return core_.options.share ? core_.options.share->stages() : 1; }
  // A step that others go on with.
  struct Underway {
    std::int64_t number = 0;
    std::vector<std::int32_t> slots;
  };
  // run() of a step in two halves, between which other steps may depart and arrive, and prompts be read.
  Underway depart(const Batch& batch);
  void arrive(const Underway& step);

  // Gives another slot what the last pass made of a sequence with logits: its `rows` tokens, and the logits
  // of the last one behind those of the others.
  void fork(std::int32_t from, std::int32_t to, std::int64_t rows);

  // A token of one sequence at its position.
  struct Next {
    std::int32_t slot = 0;
    std::int32_t position = 0;
    std::int32_t id = 0;
    bool operator==(const Next&) const = default;
  };
  // Chooses the token behind each of `last` from the rows of logits(), in that order, each as its request
  // says.
  std::vector<SampledToken> sample(std::span<const Next> last, std::span<const SampleRequest> requests,
                                   std::int64_t candidates);
  // Appends one token to each sequence and chooses the next one, in one program. What requests ask for
  // records nothing anew.
  std::vector<SampledToken> step_and_sample(std::span<const Next> tokens,
                                            std::span<const SampleRequest> requests, std::int64_t candidates);

  // Name the ops of a step of the first so many slots, or of a prompt's pass, to another backend, over this
  // pass's memory.
  void describe_step(ops::Backend& other, std::int64_t sequences);
  void describe_prompt(ops::Backend& other, const Batch& batch);

  // F32 [rows, vocab] in the backend's memory.
  const ops::View& logits() const { return logits_; }
  // Of which sequences they are.
  const std::vector<std::int32_t>& logit_slots() const { return logit_slots_; }
  void read_logits(std::vector<float>& to);
  // Those of one sequence's last token, also where others computed since; none where it has none.
  void take_logits(std::int32_t slot, std::vector<float>& to);
  // Puts back the logits of one token, to choose from them.
  void put_logits(std::int32_t slot, std::span<const float> from);
  // After a slot's past was replaced: what is there of it belongs to another past.
  void forget(std::int32_t slot);

 private:
  const layers::Decoder& decoder() const { return core_.model.decoder; }
  ops::Backend& backend() { return *core_.backend; }
  // Tells whoever holds other layers what comes.
  void begin(const Batch& batch);
  void make_writable(const Batch& batch);
  void put_step(const Batch& batch);
  ops::ConstView put_saves(const Batch& batch);
  void refuse_to_describe() const;
  layers::Pass prompt_pass(const Batch& batch);
  layers::Pass step_pass(std::int64_t sequences) const;
  void put_step(std::span<const Next> tokens);
  void run(layers::Device& device, const layers::Pass& pass, std::int64_t rows);
  void run_prompt(const Batch& batch);
  void run_step(const Batch& batch);
  void claim();
  // Where sequences compute one at a time, what one of them asks of the sampler is in the only row.
  std::int64_t sampler(std::int32_t slot) const { return pool_.extent().growing ? 0 : slot; }
  // Before another sequence's logits come to lie where these are.
  void leave_logits(std::int32_t next);
  // Programs of the ops `body` runs, with the host's work between them.
  std::unique_ptr<ops::Program> record(const std::function<void(layers::Device&)>& body);
  ops::View place_logits(std::int64_t rows);
  ops::Sample sample_op(std::span<const Next> tokens, std::span<const SampleRequest> requests,
                        std::int64_t candidates);
  std::vector<SampledToken> read_choices(std::span<const Next> before);

  Core& core_;
  Workspace& workspace_;
  std::int64_t chunk_;
  Budget::Claim claim_;
  state::StatePool pool_;
  layers::Arena arena_;        // of steps
  ops::Buffer step_logits_;    // a row per sequence of a step; recorded steps keep the address
  ops::Buffer prompt_logits_;  // of prompts that ask for more
  ops::View logits_;
  std::int64_t number_ = 0;  // of the last pass, where nodes share the layers
  std::vector<std::int32_t> logit_slots_;
  bool logits_read_ = false;
  // Of a growing group: what nobody had read when another sequence's turn came, and whose request is in the
  // sampler.
  std::map<std::int32_t, std::vector<float>> kept_logits_;
  std::int32_t sampled_slot_ = -1;
  // Inputs of a step, of which programs keep the addresses, and what is in them now.
  ops::Buffer ids_;
  ops::Buffer positions_;
  ops::Buffer slots_;
  ops::Buffer seq_starts_;  // 0, 1, 2, ...: a step has one token per sequence
  std::vector<Next> in_place_;
  std::map<std::int64_t, std::unique_ptr<ops::Program>> steps_;  // by number of sequences
  SampleSlots samplers_;
  // By number of sequences and whether nobody among them draws, for the candidates and the version of
  // samplers_ beside it.
  std::map<std::pair<std::int64_t, bool>, std::unique_ptr<ops::Program>> sampled_steps_;
  std::pair<std::int64_t, int> sampled_from_;
};

}  // namespace sluice::engine
