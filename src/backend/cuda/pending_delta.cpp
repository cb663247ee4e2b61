#include "backend/cuda/context.h"
#include "base/error.h"

namespace sluice::backend::cuda {

template <>
void run(Context&, const ops::CausalConv1d&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::CausalConv1d::kName);
}
template <>
void run(Context&, const ops::DeltaGates&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::DeltaGates::kName);
}
template <>
void run(Context&, const ops::DeltaRule&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::DeltaRule::kName);
}
template <>
void run(Context&, const ops::DeltaKkt&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::DeltaKkt::kName);
}

}  // namespace sluice::backend::cuda
