#include "sluice/ops/attention/attention.h"

#include "backend/cpu/attention/attend.h"

namespace sluice::backend::cpu {

using namespace attention;

template <>
void run(Context& context, const ops::Attention& op) {
  AttendCall call;
  call.queries[0] = op.q;
  call.keys[0] = op.k_cache;
  call.values = op.v_cache;
  call.out = op.out;
  call.start = op.start;
  call.scale = op.scale;
  call.window = op.window;
  attend(context, call, ops::Sequences(op, op.q.dim(0)));
}

}  // namespace sluice::backend::cpu
