#include "backend/reference/runtime/reference.h"
#include "ops/append_parts.h"

namespace sluice::backend::reference {

template <>
void run(const ops::QkNormRopeAppend& op) {
  run(ops::turn_part(op));
  run(ops::append_part(op));
}

template <>
void run(const ops::QkNormRopeTurboquantAppend& op) {
  run(ops::turn_part(op));
  run(ops::append_part(op));
}

}  // namespace sluice::backend::reference
