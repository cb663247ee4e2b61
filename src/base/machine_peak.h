// What this machine can do at best: bytes read from memory and F32 multiply-adds a second.
#pragma once

#include <hwy/targets.h>

#include <cstdint>

#include "base/thread_pool.h"

namespace sluice {

// Bytes a second, read from a buffer of 1 GiB, or of `most` bytes where that is less and not 0; never of less
// than 16 MiB, which a cache may hold.
double measure_read_bandwidth(ThreadPool& pool, std::uint64_t most);
// Operations per second of an instruction set; a multiply-add counts two.
double measure_flops(ThreadPool& pool, const hwy::ChosenTarget& target);

}  // namespace sluice
