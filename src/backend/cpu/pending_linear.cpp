#include "backend/cpu/context.h"
#include "base/error.h"

namespace sluice::backend::cpu {

template <>
void run(Context&, const ops::Embed& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::Matmul& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::ExpertMatmul& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::GateUpSwiglu& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::ExpertGateUpSwiglu& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::MlaAbsorbQ& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::MlaProjectOut& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}

}  // namespace sluice::backend::cpu
