#include "backend/cuda/context.h"
#include "base/error.h"

namespace sluice::backend::cuda {

template <>
void run(Context&, const ops::KvAppend&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::KvAppend::kName);
}
template <>
void run(Context&, const ops::Attention&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::Attention::kName);
}
template <>
void run(Context&, const ops::Hadamard&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::Hadamard::kName);
}
template <>
void run(Context&, const ops::TurboquantEncode&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::TurboquantEncode::kName);
}
template <>
void run(Context&, const ops::TurboquantDecode&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::TurboquantDecode::kName);
}
template <>
void run(Context&, const ops::TurboquantAppend&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::TurboquantAppend::kName);
}
template <>
void run(Context&, const ops::TurboquantAttention&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::TurboquantAttention::kName);
}
template <>
void run(Context&, const ops::MlaAppend&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::MlaAppend::kName);
}
template <>
void run(Context&, const ops::MlaAttention&) {
  fail(ErrorKind::unsupported, "{} is not available on cuda yet", ops::MlaAttention::kName);
}

}  // namespace sluice::backend::cuda
