#include "backend/cpu/context.h"
#include "base/error.h"

namespace sluice::backend::cpu {

template <>
void run(Context&, const ops::Swiglu& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::Add& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::SigmoidGate& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::AddRmsNorm& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::GatedRmsNorm& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::QkL2Norm& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::Rope& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::SplitQGate& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::RouteSoftmax& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::RouteSigmoid& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::MoeCombine& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::MoeScatterAdd& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(Context&, const ops::MlaSplit& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}

}  // namespace sluice::backend::cpu
