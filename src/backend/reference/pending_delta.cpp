#include "backend/reference/reference.h"
#include "base/error.h"

namespace sluice::backend::reference {

template <>
void run(const ops::CausalConv1d& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(const ops::DeltaGates& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(const ops::DeltaRule& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(const ops::DeltaKkt& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}

}  // namespace sluice::backend::reference
