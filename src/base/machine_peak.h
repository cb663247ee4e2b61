// What this machine can do at best: bytes read from memory and F32 multiply-adds a second.
#pragma once

#include "base/thread_pool.h"

namespace sluice {

double measure_read_bandwidth(ThreadPool& pool);  // bytes a second
double measure_flops(ThreadPool& pool);           // operations a second, a multiply-add counts two

}  // namespace sluice
