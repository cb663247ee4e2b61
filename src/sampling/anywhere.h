// Marks functions that also run on a device.
#pragma once

#ifdef __CUDACC__
#define SLUICE_ANYWHERE __host__ __device__
#else
#define SLUICE_ANYWHERE
#endif
