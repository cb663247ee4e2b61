// A prefill product as its kernels see it, and the kernels, with a file each.
#pragma once

#include "backend/cuda/linear/prefill/buckets.h"

namespace sluice::backend::cuda::linear::prefill {

inline constexpr int kTileRows = 128;

struct PrefillCall {
  LinearCall linear;
  Buckets buckets;       // of experts; absent: matrix j is for slot j of every token
  int buckets_rows = 0;  // maximum rows per bucket tile
  int row_tiles = 0;
  int column_tiles = 0;               // set by the kernel's launch
  int group_shift = 0;                // log2 of the group size
  bool vector_out = false;            // rows of out allow 16-byte stores
  const float* input_sums = nullptr;  // for F32 inputs split into terms: of each 64 inputs, by row
};

void launch_mma(Context& context, PrefillCall call);    // any device
void launch_wgmma(Context& context, PrefillCall call);  // compute capability 9.0
// 4-bit weights on compute capability 9.0; bucket tiles have int4_bucket_rows() rows.
bool supports_int4(const LinearCall& call);
int int4_bucket_rows(const LinearCall& call);
void launch_int4(Context& context, const PrefillCall& call);
// F32 inputs, 4-bit weights, compute capability 9.0.
bool supports_exact_int4(const LinearCall& call, const DeviceInfo& device);
void launch_exact_int4(Context& context, const LinearCall& call);

// Calls f.operator()<storage>().
template <class F>
void with_storage(Storage storage, F&& f) {
  switch (storage) {
    case Storage::f32:
      return f.template operator()<Storage::f32>();
    case Storage::bf16:
      return f.template operator()<Storage::bf16>();
    case Storage::f16:
      return f.template operator()<Storage::f16>();
    case Storage::affine2:
      return f.template operator()<Storage::affine2>();
    case Storage::affine3:
      return f.template operator()<Storage::affine3>();
    case Storage::affine4:
      return f.template operator()<Storage::affine4>();
    case Storage::affine5:
      return f.template operator()<Storage::affine5>();
    case Storage::affine6:
      return f.template operator()<Storage::affine6>();
    case Storage::affine8:
      return f.template operator()<Storage::affine8>();
    case Storage::fp4:
      return f.template operator()<Storage::fp4>();
    case Storage::fp8:
      return f.template operator()<Storage::fp8>();
  }
}

}  // namespace sluice::backend::cuda::linear::prefill
