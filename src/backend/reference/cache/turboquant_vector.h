// One vector of a TurboQuant cache: codes as a little-endian bit stream, and a norm.
#pragma once

#include <vector>

#include "sluice/ops/cache/turboquant_encode.h"

namespace sluice::backend::reference::cache {

// Writes the codes and the norm of x (a row) at `codes` (a row) and `norm`. A zero vector has norm 0 and the
// codes of value 0: the highest negative level everywhere.
void encode_vector(const ops::ConstView& x, const ops::ConstView& signs, std::int64_t bits,
                   ops::TurboquantNorm kind, const ops::View& codes, float& norm);

// level[code] * norm/sqrt(D), in the rotated basis.
std::vector<double> decode_vector(const ops::ConstView& codes, double norm, std::int64_t bits);

}  // namespace sluice::backend::reference::cache
