#include "sluice/ops/cache/kv_append.h"

#include "backend/cpu/cache/append.h"

namespace sluice::backend::cpu {

using namespace cache;

template <>
void run(Context& context, const ops::KvAppend& op) {
  append(context, op, op.k, op.k_cache);
  append(context, op, op.v, op.v_cache);
}

}  // namespace sluice::backend::cpu
