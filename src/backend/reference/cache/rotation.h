// The Walsh-Hadamard rotation with signs.
#pragma once

#include <vector>

#include "sluice/ops/view.h"

namespace sluice::backend::reference::cache {

// 1 or -1 for coordinate i; always 1 without signs.
double sign_of(const ops::ConstView& signs, std::int64_t i);
// x becomes H(signs * x)/sqrt(D).
void rotate(std::vector<double>& x, const ops::ConstView& signs);
// x becomes signs * (H x)/sqrt(D).
void rotate_back(std::vector<double>& x, const ops::ConstView& signs);

// Conversion between a row and numbers.
std::vector<double> read_row(const ops::ConstView& row);
void write_row(const std::vector<double>& values, const ops::View& row);

}  // namespace sluice::backend::reference::cache
