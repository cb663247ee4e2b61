// k_cache[start+i] = k[i], v_cache[start+i] = v[i].
#include "sluice/ops/cache/kv_append.h"

#include "backend/cuda/cache/append_rows.cuh"

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::KvAppend& op) {
  using namespace cache;
  append(context, op, op.k, op.k_cache, op.v, op.v_cache);
}

}  // namespace sluice::backend::cuda
