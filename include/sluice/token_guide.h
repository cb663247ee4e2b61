// Constrains an answer token by token; implemented by grammars, limits of thinking and tool calls.
#pragma once

#include <cstdint>
#include <span>

namespace sluice {

// Follows one answer. Used by one thread at a time: the generator requests the mask before each token and
// then reports which token was chosen. An Error from either ends only that answer.
class TokenGuide {
 public:
  virtual ~TokenGuide() = default;

  // Fills one bit per token (bit i % 8 of byte i / 8 is that of token i), set where the token may come next,
  // and returns true; or returns false and leaves `allowed` alone where every token may come.
  virtual bool mask(std::span<std::uint8_t> allowed) = 0;
  // The token that was chosen, stop tokens included.
  virtual void accept(std::int32_t token) = 0;
  // Whether the answer is complete and ends before another token is chosen.
  virtual bool finished() const = 0;
};

}  // namespace sluice
