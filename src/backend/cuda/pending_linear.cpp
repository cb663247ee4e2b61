#include "backend/cuda/context.h"
#include "base/error.h"

namespace sluice::backend::cuda {

template <>
void run(Context&, const ops::Embed&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::Embed::kName);
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
