#include "backend/cuda/context.h"
#include "base/error.h"

namespace sluice::backend::cuda {

template <>
void run(Context&, const ops::Embed&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::Embed::kName);
}
template <>
void run(Context&, const ops::Matmul&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::Matmul::kName);
}
template <>
void run(Context&, const ops::ExpertMatmul&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::ExpertMatmul::kName);
}
template <>
void run(Context&, const ops::GateUpSwiglu&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::GateUpSwiglu::kName);
}
template <>
void run(Context&, const ops::ExpertGateUpSwiglu&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::ExpertGateUpSwiglu::kName);
}
template <>
void run(Context&, const ops::MlaAbsorbQ&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::MlaAbsorbQ::kName);
}
template <>
void run(Context&, const ops::MlaProjectOut&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::MlaProjectOut::kName);
}

}  // namespace sluice::backend::cuda
