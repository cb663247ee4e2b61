#include "backend/cpu/context.h"
#include "base/error.h"

namespace sluice::backend::cpu {

template <>
void run(Context&, const ops::CausalConv1d& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::DeltaGates& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::DeltaRule& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::DeltaKkt& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}

}  // namespace sluice::backend::cpu
