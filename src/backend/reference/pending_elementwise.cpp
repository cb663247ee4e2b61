#include "backend/reference/reference.h"
#include "base/error.h"

namespace sluice::backend::reference {

template <>
void run(const ops::Swiglu& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(const ops::Add& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(const ops::SigmoidGate& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(const ops::AddRmsNorm& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(const ops::GatedRmsNorm& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(const ops::QkL2Norm& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(const ops::Rope& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(const ops::SplitQGate& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(const ops::RouteSoftmax& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(const ops::RouteSigmoid& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(const ops::MoeCombine& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(const ops::MoeScatterAdd& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(const ops::MlaSplit& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}

}  // namespace sluice::backend::reference
