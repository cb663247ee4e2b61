#include "backend/cuda/context.h"
#include "base/error.h"

namespace sluice::backend::cuda {

template <>
void run(Context&, const ops::Swiglu&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::Swiglu::kName);
}
template <>
void run(Context&, const ops::Add&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::Add::kName);
}
template <>
void run(Context&, const ops::SigmoidGate&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::SigmoidGate::kName);
}
template <>
void run(Context&, const ops::AddRmsNorm&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::AddRmsNorm::kName);
}
template <>
void run(Context&, const ops::GatedRmsNorm&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::GatedRmsNorm::kName);
}
template <>
void run(Context&, const ops::QkL2Norm&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::QkL2Norm::kName);
}
template <>
void run(Context&, const ops::Rope&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::Rope::kName);
}
template <>
void run(Context&, const ops::SplitQGate&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::SplitQGate::kName);
}
template <>
void run(Context&, const ops::RouteSoftmax&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::RouteSoftmax::kName);
}
template <>
void run(Context&, const ops::RouteSigmoid&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::RouteSigmoid::kName);
}
template <>
void run(Context&, const ops::MoeCombine&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::MoeCombine::kName);
}
template <>
void run(Context&, const ops::MoeScatterAdd&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::MoeScatterAdd::kName);
}
template <>
void run(Context&, const ops::MlaSplit&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::MlaSplit::kName);
}

}  // namespace sluice::backend::cuda
