// Which of an op's kernels may run. Each class gives a token the same bits whatever else is in the call; the
// caller chooses it from the request (prompt or generated tokens), never from the batch.
#pragma once

#include <cstdint>

namespace sluice::ops {

enum class Phase : std::uint8_t { automatic, decode, prefill };

}  // namespace sluice::ops
