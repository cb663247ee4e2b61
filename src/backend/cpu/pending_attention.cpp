#include "backend/cpu/context.h"
#include "base/error.h"

namespace sluice::backend::cpu {

template <>
void run(Context&, const ops::KvAppend& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::Attention& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::MlaAppend& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::MlaAttention& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}

}  // namespace sluice::backend::cpu
