#include "backend/reference/runtime/reference.h"
#include "ops/append_parts.h"

namespace sluice::backend::reference {

// Specialisations that other files define. In a unity build those may follow this file, which would be too
// late for a declaration.
template <>
void run(const ops::QkNormRope& op);
template <>
void run(const ops::KvAppend& op);
template <>
void run(const ops::TurboquantAppend& op);

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
