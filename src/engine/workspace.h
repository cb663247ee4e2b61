// Memory that all passes share, since one thread runs them one after the other: activations and inputs of
// prompts.
#pragma once

#include "base/integer_cast.h"
#include "engine/core.h"
#include "layers/pass.h"

namespace sluice::engine {

class Workspace {
 public:
  explicit Workspace(Core& core) : core_(core) {}

  // Bytes that prompts of up to `tokens` tokens take on the backend.
  static std::uint64_t bytes(const layers::Decoder& decoder, const Settings& settings, std::int64_t tokens);
  std::uint64_t bytes() const;
  // The same with the scratch memory of ops, which rearrange inputs for their kernels: at most the size of
  // all activations.
  static std::uint64_t claimed(const layers::Decoder& decoder, const Settings& settings,
                               std::int64_t tokens) {
    return 2 * bytes(decoder, settings, tokens);
  }

  // Makes room for passes of that many tokens; `beside` bytes must fit the budget too.
  void grow(std::int64_t tokens, std::uint64_t beside);
  // Bytes that growing would claim.
  std::uint64_t growth(std::int64_t tokens) const;
  // Releases everything.
  void release();

  std::int64_t tokens() const { return tokens_; }
  layers::Arena& arena() { return arena_; }

  // Inputs of a prompt on the backend, valid until the next ones are put.
  ops::ConstView put_ids(std::span<const std::int32_t> values) { return put(ids_, values); }
  ops::ConstView put_positions(std::span<const std::int32_t> values) { return put(positions_, values); }
  ops::ConstView put_seq_starts(std::span<const std::int32_t> values) { return put(seq_starts_, values); }
  ops::ConstView put_slots(std::span<const std::int32_t> values) { return put(slots_, values); }
  ops::ConstView put_starts(std::span<const std::int32_t> values) { return put(starts_, values); }
  ops::ConstView put_saves(std::span<const std::int32_t> values) { return put(saves_, values); }

 private:
  static constexpr int kInputs = 6;
  static std::size_t input_bytes(std::int64_t tokens) { return to_size(tokens + 1) * sizeof(std::int32_t); }
  void drop();
  std::uint64_t claimed(std::int64_t tokens) const {
    return tokens == 0 ? 0 : claimed(core_.model.decoder, core_.settings, tokens);
  }
  ops::ConstView put(ops::Buffer& buffer, std::span<const std::int32_t> values);

  Core& core_;
  std::int64_t tokens_ = 0;
  std::vector<placement::Budget::Claim> claims_;
  layers::Arena arena_;
  ops::Buffer ids_;
  ops::Buffer positions_;
  ops::Buffer seq_starts_;
  ops::Buffer slots_;
  ops::Buffer starts_;
  ops::Buffer saves_;
};

}  // namespace sluice::engine
