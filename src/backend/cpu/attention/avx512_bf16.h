// The products of attention with vector instructions for pairs of BF16 numbers (AVX512_BF16), for processors
// without AMX.
#pragma once

#include "backend/cpu/attention/bf16_products.h"

namespace sluice::backend::cpu::attention {

// Null if the processor lacks these instructions.
const AttendProducts* attend_pairs(Isa isa);

}  // namespace sluice::backend::cpu::attention
