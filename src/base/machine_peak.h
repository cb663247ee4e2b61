// Measures the peak rates of this machine: memory bandwidth and F32 multiply-adds.
#pragma once

#include <hwy/targets.h>

#include <cstdint>

#include "base/thread_pool.h"

namespace sluice {

// Bytes per second when reading a buffer of 1 GiB, or of `most` bytes if that is less and not 0; at least 16
// MiB, because a cache may hold less.
double measure_read_bandwidth(ThreadPool& pool, std::uint64_t most);
// Operations per second of an instruction set; a multiply-add counts as two.
double measure_flops(ThreadPool& pool, const hwy::ChosenTarget& target);

}  // namespace sluice
