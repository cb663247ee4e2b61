// The products of attention by vectors that multiply pairs of BF16 numbers (AVX512_BF16), for processors that
// have no matrix units.
#pragma once

#include "backend/cpu/attention/bf16_products.h"

namespace sluice::backend::cpu::attention {

// Null where the processor has no such instruction.
const AttendProducts* attend_pairs(Isa isa);

}  // namespace sluice::backend::cpu::attention
