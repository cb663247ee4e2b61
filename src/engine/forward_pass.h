// Runs the model over the sequences of a group of slots: prompts directly, generated tokens as recorded
// programs.
#pragma once

#include <map>

#include "engine/batch.h"
#include "engine/core.h"
#include "engine/sample_slots.h"
#include "engine/workspace.h"
#include "state/state_pool.h"

namespace sluice::engine {

// Used by the executor's thread only.
class ForwardPass {
 public:
  // `chunk` is the maximum number of tokens in a prompt pass.
  ForwardPass(Core& core, Workspace& workspace, const state::Extent& extent, std::int64_t chunk);

  // Bytes of such a group on the backend when it is created, and the most that its recorded programs take.
  static std::uint64_t bytes(const layers::Decoder& decoder, const Settings& settings,
                             const state::Extent& extent);
  static std::uint64_t program_bytes(const layers::Decoder& decoder, const Settings& settings,
                                     const state::Extent& extent);
  // Now.
  std::uint64_t bytes() const;
  std::uint64_t program_bytes() const;
  // The maximum of both, with the logits that its callers keep.
  static std::uint64_t claimed(const layers::Decoder& decoder, const Settings& settings,
                               const state::Extent& extent);
  // Bytes that one sequence of up to that many tokens finally takes in a growing group.
  static std::uint64_t slot_bytes(const layers::Decoder& decoder, const Settings& settings,
                                  const state::Extent& extent, std::int64_t capacity);

  state::StatePool& pool() { return pool_; }
  std::int64_t slots() const { return pool_.slots(); }
  std::int64_t at_once() const { return pool_.extent().at_once(); }
  std::int64_t chunk() const { return chunk_; }

  // Prepares a slot for a sequence of up to that many tokens; throws if the budget has no room for it.
  void open(std::int32_t slot, std::int64_t capacity);
  // Returns what the slot took.
  void close(std::int32_t slot);

  // Runs the batch. Afterwards logits() has the requested rows, sequence by sequence. Generated tokens run a
  // program that is recorded once for that number of sequences.
  void run(const Batch& batch);

  // If nodes split the layers: the number of steps of different sequences that keeps all nodes busy.
  std::int64_t stages() const { return core_.options.share ? core_.options.share->stages() : 1; }
  // A step that is in flight on other nodes.
  struct Underway {
    std::int64_t number = 0;
    std::vector<std::int32_t> slots;
  };
  // run() of a step in two halves, between which other steps may depart and arrive, and prompts may run.
  Underway depart(const Batch& batch);
  void arrive(const Underway& step);

  // Gives another slot the state of a sequence of the last pass: its `rows` tokens, and the logits of the
  // last one, which are appended to the others'.
  void fork(std::int32_t from, std::int32_t to, std::int64_t rows);

  // A token of one sequence at its position.
  struct Next {
    std::int32_t slot = 0;
    std::int32_t position = 0;
    std::int32_t id = 0;
    bool operator==(const Next&) const = default;
  };
  // Samples the token after each of `last` from the rows of logits(), in that order, each by its
  // request.
  std::vector<SampledToken> sample(std::span<const Next> last, std::span<const SampleRequest> requests,
                                   std::int64_t candidates);
  // Appends one token to each sequence and samples the next one, in one program. Changed requests do not
  // require a new recording.
  std::vector<SampledToken> step_and_sample(std::span<const Next> tokens,
                                            std::span<const SampleRequest> requests, std::int64_t candidates);

  // Runs the ops of a step of the first `sequences` slots, or of a prompt pass, on another backend, with this
  // pass's memory.
  void describe_step(ops::Backend& other, std::int64_t sequences);
  void describe_prompt(ops::Backend& other, const Batch& batch);

  // F32 [rows, vocab] in the backend's memory.
  const ops::View& logits() const { return logits_; }
  // The sequences of these logits.
  const std::vector<std::int32_t>& logit_slots() const { return logit_slots_; }
  void read_logits(std::vector<float>& to);
  // The logits of one sequence's last token, even if others computed since; empty if it has none.
  void take_logits(std::int32_t slot, std::vector<float>& to);
  // Puts back the logits of one token, to sample from them.
  void put_logits(std::int32_t slot, std::span<const float> from);
  // Call after a slot's past was replaced: discards what belongs to the old one.
  void forget(std::int32_t slot);

 private:
  const layers::Decoder& decoder() const { return core_.model.decoder; }
  ops::Backend& backend() { return *core_.backend; }
  // Announces the batch to the nodes with other layers.
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
  // If sequences compute one at a time, the sampler has a single row.
  std::int64_t sampler(std::int32_t slot) const { return pool_.extent().growing ? 0 : slot; }
  // Call before another sequence's logits overwrite these.
  void leave_logits(std::int32_t next);
  // Records the ops that `body` runs, with the host's work between them.
  std::unique_ptr<ops::Program> record(const std::function<void(layers::Device&)>& body);
  ops::View place_logits(std::int64_t rows);
  ops::Sample sample_op(std::span<const Next> tokens, std::span<const SampleRequest> requests,
                        std::int64_t candidates);
  std::vector<SampledToken> read_choices(std::span<const Next> before);

  Core& core_;
  Workspace& workspace_;
  std::int64_t chunk_;
  placement::Budget::Claim claim_;
  state::StatePool pool_;
  layers::Arena arena_;        // of steps
  ops::Buffer step_logits_;    // a row per sequence of a step; recorded steps keep the address
  ops::Buffer prompt_logits_;  // for prompts that request more rows
  ops::View logits_;
  std::int64_t number_ = 0;  // of the last pass, if nodes share the layers
  std::vector<std::int32_t> logit_slots_;
  bool logits_read_ = false;
  // In a growing group: logits that were unread when another sequence computed, and the slot whose request is
  // in the sampler.
  std::map<std::int32_t, std::vector<float>> kept_logits_;
  std::int32_t sampled_slot_ = -1;
  // Inputs of a step, whose addresses programs keep, and their current contents.
  ops::Buffer ids_;
  ops::Buffer positions_;
  ops::Buffer slots_;
  ops::Buffer seq_starts_;  // 0, 1, 2, ...: a step has one token per sequence
  std::vector<Next> in_place_;
  std::map<std::int64_t, std::unique_ptr<ops::Program>> steps_;  // by number of sequences
  SampleSlots samplers_;
  // By number of sequences and whether none of them draws at random, for the candidates and version of
  // samplers_ below.
  std::map<std::pair<std::int64_t, bool>, std::unique_ptr<ops::Program>> sampled_steps_;
  std::pair<std::int64_t, int> sampled_from_;
};

}  // namespace sluice::engine
