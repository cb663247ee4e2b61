#include "backend/reference/reference.h"
#include "base/error.h"

namespace sluice::backend::reference {

template <>
void run(const ops::Hadamard& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(const ops::TurboquantEncode& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(const ops::TurboquantDecode& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(const ops::TurboquantAppend& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(const ops::TurboquantAttention& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}

}  // namespace sluice::backend::reference
