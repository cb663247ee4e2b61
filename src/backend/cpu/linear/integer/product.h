// Products of packed weights with activations rounded to integers (rows-inl.h).
//
// With codes c, scales s and biases b of a weight row and integers q with scales t of a row of x, per group:
// dot = sum of c * q, exact; term = (dot * t) * s + b * (t * sum of q). The terms of the groups g, g + 4, g +
// 8, ... are added in this order by fused multiply-adds, each of the four sums from 0, and the result is (sum
// 0 + sum 1) + (sum 2 + sum 3). Every kernel computes exactly this, so a result has the same bits for one
// token and for many, with any number of threads and on any instruction set.
#pragma once

#include "backend/cpu/linear/linear.h"

// The namespace of the kernels for one instruction set. Highway has no target for AVX-VNNI, so avx_vnni.cpp
// compiles the AVX2 kernels a second time.
#ifdef SLUICE_AVX_VNNI
#define SLUICE_INTEGER_TARGET N_AVX_VNNI
#else
#define SLUICE_INTEGER_TARGET HWY_NAMESPACE
#endif

namespace sluice::backend::cpu::linear::integer {

// The digits of q, one byte each: q = (high << kDigitBits) + low, -127 <= high <= 127, -64 <= low <= 63.
constexpr int kDigitBits = 7;
constexpr float kLargestInteger = 127 << kDigitBits;
constexpr int kChains = 4;  // sums per product, each of every fourth group

// All packed codes except E4M3, which are not small integers.
bool has_integer_product(const Linear& op);

// Up to kMostTogether products that do not depend on each other.
void run_integer_linears(Context& context, std::span<const Linear> ops);
// The same with AVX-VNNI.
void run_avx_vnni(Context& context, std::span<const Linear> ops);

}  // namespace sluice::backend::cpu::linear::integer
