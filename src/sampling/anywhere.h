// Marks functions that a device runs too.
#pragma once

#ifdef __CUDACC__
#define SLUICE_ANYWHERE __host__ __device__
#else
#define SLUICE_ANYWHERE
#endif
