// The two ops one after the other.
#include "backend/cpu/runtime/context.h"
#include "ops/append_parts.h"

namespace sluice::backend::cpu {

template <>
void run(Context& context, const ops::QkNormRopeAppend& op) {
  run(context, ops::turn_part(op));
  run(context, ops::append_part(op));
}

template <>
void run(Context& context, const ops::QkNormRopeTurboquantAppend& op) {
  run(context, ops::turn_part(op));
  run(context, ops::append_part(op));
}

}  // namespace sluice::backend::cpu
