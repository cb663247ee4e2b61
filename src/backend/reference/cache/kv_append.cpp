#include "sluice/ops/cache/kv_append.h"

#include "backend/reference/cache/append.h"
#include "backend/reference/runtime/reference.h"

namespace sluice::backend::reference {

using namespace cache;

template <>
void run(const ops::KvAppend& op) {
  append(op, op.k, op.k_cache);
  append(op, op.v, op.v_cache);
}

}  // namespace sluice::backend::reference
