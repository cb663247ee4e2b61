// The products with weight matrices as their kernels see them: one description for matmul, gate_up_swiglu,
// their expert forms and the per-head products of latent attention.
//
//   out[t,j,n] = sum_i x[t,j,i] w0[m(t,j),n,i], or, with two operands, silu(that) * the same with w1.
#pragma once

#ifdef __CUDACC__
#include <cuda_bf16.h>
#endif

#include <cstdint>

#include "backend/cuda/runtime/context.h"
#include "base/integer_cast.h"
#include "quant/storage.h"

namespace sluice::backend::cuda::linear {

using quant::ScaleType;
using quant::Storage;

// One matrix in device memory. Its rows are contiguous.
struct MatrixPointers {
  const std::byte* values = nullptr;
  const std::byte* scales = nullptr;
  const std::byte* biases = nullptr;
};

// The matrices of one operand: a single one, a stack, some rows of each head of a larger matrix, or one
// buffer per matrix.
struct Matrices {
  Storage storage = Storage::f32;
  ScaleType scale_type = ScaleType::none;
  ScaleType bias_type = ScaleType::none;
  int bits = 32;
  int group_size = 1;
  long long row_bytes = 0;
  long long scale_row_bytes = 0;
  long long bias_row_bytes = 0;
  MatrixPointers first;
  long long step = 0;                     // rows between matrices
  const MatrixPointers* table = nullptr;  // in device memory, for matrices in separate buffers
  int alignment = 1;                      // of every matrix's values, at most 16 bytes
  int scale_alignment = 1;                // of their scales and biases, likewise

  bool quantized() const { return scale_type != ScaleType::none; }
  // Whether scales and biases have one type, as the tuned kernels need.
  bool uniform() const { return bias_type == ScaleType::none || bias_type == scale_type; }
#ifdef __CUDACC__
  __device__ __forceinline__ MatrixPointers operator[](long long m) const {
    if (table != nullptr) return table[m];
    const long long rows = m * step;
    return {first.values + rows * row_bytes, first.scales + rows * scale_row_bytes,
            first.biases + rows * bias_row_bytes};
  }
#endif
};

struct LinearCall {
  ops::DType type = ops::DType::f32;      // of x
  ops::DType out_type = ops::DType::f32;  // of out: x's, or F32
  const void* x = nullptr;
  long long x_token = 0;  // elements between tokens
  long long x_slot = 0;   // elements between a token's slots; 0 if its slots share one row
  void* out = nullptr;
  long long out_token = 0;
  long long out_slot = 0;
  const int* experts = nullptr;  // device memory [T,slots]; null: slot j uses matrix j
  long long experts_token = 0;
  Matrices w[2];  // gate and up, or one
  int operands = 1;
  long long tokens = 0;    // T
  long long slots = 1;     // k, or heads
  long long matrices = 1;  // E
  long long inputs = 0;    // K
  long long outputs = 0;   // N

#ifdef __CUDACC__
  // The matrix of row t * slots + j; if the expert does not exist, reports it and returns -1.
  __device__ __forceinline__ long long matrix_of(long long row, Fault* fault) const {
    const long long j = slot(row);
    if (experts == nullptr) return j;
    const int expert = experts[token(row) * experts_token + j];
    if (expert >= 0 && expert < matrices) return expert;
    report(fault, FaultKind::expert_id, expert, matrices);
    return -1;
  }
  // Stores a result at `offset` elements from `out`, rounded to its type.
  __device__ __forceinline__ void store(long long offset, float value) const {
    if (out_type == ops::DType::f32)
      static_cast<float*>(out)[offset] = value;
    else
      static_cast<__nv_bfloat16*>(out)[offset] = __float2bfloat16_rn(value);
  }
  __device__ __forceinline__ long long x_offset(long long row) const {
    return token(row) * x_token + slot(row) * x_slot;
  }
  __device__ __forceinline__ long long out_offset(long long row) const {
    return token(row) * out_token + slot(row) * out_slot;
  }
  // There are fewer than 2^32 rows: a 64-bit division would take longer than the rest of an epilogue.
  __device__ __forceinline__ long long token(long long row) const {
    return to_unsigned(row) / to_unsigned(slots);
  }
  __device__ __forceinline__ long long slot(long long row) const {
    return to_unsigned(row) % to_unsigned(slots);
  }
#endif
};

Matrices matrices_of(const ops::Weight& weight);  // [N,K] or a stack [E,N,K]
Matrices matrices_of(Context& context, const ops::ExpertWeights& experts);
// Matrix h begins at row h * step + first of `weight` [..,K].
Matrices head_rows(const ops::Weight& weight, std::int64_t step, std::int64_t first);

// The call without its operands: x [T,K] or [T,slots,K], out [T,N] or [T,slots,N]; slot j uses matrix j.
LinearCall linear_call(const ops::ConstView& x, const ops::View& out);
// The same, with the matrices that `experts` names.
LinearCall linear_call(const ops::ConstView& x, const ops::ConstView& experts, std::int64_t matrices,
                       const ops::View& out);

// Chooses decode, prefill or generic kernels and runs the call.
void run_linear(Context& context, const LinearCall& call);
// Supports any storage at any address, slowly.
void launch_generic(Context& context, const LinearCall& call);

}  // namespace sluice::backend::cuda::linear
