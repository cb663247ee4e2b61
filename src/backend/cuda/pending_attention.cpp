#include "backend/cuda/context.h"
#include "base/error.h"

namespace sluice::backend::cuda {

template <>
void run(Context&, const ops::Attention&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::Attention::kName);
}
template <>
void run(Context&, const ops::TurboquantAttention&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::TurboquantAttention::kName);
}
template <>
void run(Context&, const ops::MlaAttention&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::MlaAttention::kName);
}

}  // namespace sluice::backend::cuda
