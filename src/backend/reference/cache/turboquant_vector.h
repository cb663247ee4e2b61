// One vector of a TurboQuant cache: codes as a little-endian bit stream, and a norm.
#pragma once

#include <vector>

#include "sluice/ops/cache/turboquant_encode.h"

namespace sluice::backend::reference::cache {

// Writes the codes and the norm of x (a row) to `codes` (a row) and `norm`. A zero vector has norm 0 and, for
// every coordinate, the code that 0 is rounded to: that of the highest negative level.
void encode_vector(const ops::ConstView& x, const ops::ConstView& signs, std::int64_t bits,
                   ops::TurboquantNorm kind, const ops::View& codes, float& norm);

// level[code] * norm/sqrt(D), in the rotated basis.
std::vector<double> decode_vector(const ops::ConstView& codes, double norm, std::int64_t bits);

}  // namespace sluice::backend::reference::cache
