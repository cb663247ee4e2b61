// The sampling settings of the requests in a pool's slots, kept in the backend's memory: one recorded program
// serves any mixture of them, and a request with new settings only changes numbers.
//
// Penalties need to know how often each token occurred. That is a dense row of counts per slot, 4 bytes
// per token of the vocabulary: for any length of the context, a device counts a chosen token with one
// store and reads the counts in the order of the logits, and nothing is copied from the host between
// steps.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sluice/ops/backend.h"
#include "sluice/sampling.h"

namespace sluice::engine {

// How one sequence wants its next token sampled: a view of what others keep until the token is chosen.
struct SampleRequest {
  SampleRequest(const SamplingSettings& settings, std::span<const std::int32_t> past = {},
                std::span<const std::uint8_t> allowed = {}, bool follows = false)
      : settings(settings), past(past), allowed(allowed), follows(follows) {}
  SampleRequest(SamplingSettings&&, std::span<const std::int32_t> = {}, std::span<const std::uint8_t> = {},
                bool = false) = delete;  // temporaries would not live long enough

  const SamplingSettings& settings;
  std::span<const std::int32_t> past;     // all tokens before the one to choose, for the penalties
  std::span<const std::uint8_t> allowed;  // bit i % 8 of byte i / 8 allows token i; empty: all
  // Whether `past` is that of the previous request in this slot plus the token chosen then.
  bool follows;
};

class SampleSlots {
 public:
  SampleSlots(ops::Backend& backend, std::int64_t slots, std::int64_t vocab);
  static std::uint64_t bytes(std::int64_t slots, std::int64_t vocab);
  // Additional bytes for requests with many biases.
  std::uint64_t grown_bytes() const;

  // Sets the request for the next choice in `slot`, among the first `candidates` tokens. Throws if settings
  // are invalid.
  void set(std::int64_t slot, const SampleRequest& request, std::int64_t candidates);

  // Whether no request in these slots draws at random or wants log-probabilities. An op for only such slots
  // is shorter.
  bool plain(std::span<const std::int64_t> slots) const;

  // The op over the rows of `logits`, F32 [T, vocab]. Row t follows the request of slots[t]. The op stays
  // valid whatever is set later, unless version() changes.
  struct Rows {
    ops::View logits;
    ops::View positions;
    ops::View ids;
    ops::ConstView slots;
  };
  ops::Sample op(const Rows& rows, std::int64_t candidates, bool plain) const;
  // Increases when a request has more biases than there was room for.
  int version() const { return version_; }

  // The tokens that the op chose for the rows of these slots, once it has run.
  std::vector<SampledToken> read(const ops::ConstView& ids, std::span<const std::int64_t> slots);

 private:
  // How often tokens occurred, as in a slot's row of counts.
  struct Counted {
    bool current = false;
    bool penalised = false;
    int window = 0;
    std::unordered_map<std::int32_t, std::int32_t> counts;
  };
  struct Slot {
    std::vector<std::pair<std::int32_t, float>> biases;
    bool masked = false;
    int logprobs = -1;
    bool draws = false;
    Counted counted;
  };

  void set_numbers(std::int64_t slot, const SamplingSettings& settings);
  void set_biases(std::int64_t slot, const SamplingSettings& settings);
  void set_mask(std::int64_t slot, std::span<const std::uint8_t> allowed, std::int64_t candidates);
  void set_counts(std::int64_t slot, const SampleRequest& request);
  void make_room(std::size_t biases);
  ops::ConstView numbers(std::int64_t first, ops::DType type) const;
  std::int64_t slots() const { return std::ssize(slots_); }
  std::int64_t mask_bytes() const { return (vocab_ + 7) / 8; }

  ops::Backend& backend_;
  std::int64_t vocab_;
  std::int64_t room_;  // biases per slot
  int version_ = 0;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> words_;  // the settings, in the layout of numbers_
  ops::Buffer numbers_;
  ops::Buffer counts_;
  ops::Buffer allowed_;
  ops::Buffer bias_ids_;
  ops::Buffer bias_;
  ops::Buffer logprob_;
  ops::Buffer top_ids_;
  ops::Buffer top_logprobs_;
};

}  // namespace sluice::engine
