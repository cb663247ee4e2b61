#include "sluice/ops/kv_append.h"

#include "backend/reference/append.h"
#include "backend/reference/reference.h"

namespace sluice::backend::reference {

template <>
void run(const ops::KvAppend& op) {
  append(op, op.k, op.k_cache);
  append(op, op.v, op.v_cache);
}

}  // namespace sluice::backend::reference
