#include "backend/cpu/context.h"
#include "base/error.h"

namespace sluice::backend::cpu {

template <>
void run(Context&, const ops::Hadamard& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::TurboquantEncode& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::TurboquantDecode& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::TurboquantAppend& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::TurboquantAttention& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}

}  // namespace sluice::backend::cpu
