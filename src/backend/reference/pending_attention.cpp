#include "backend/reference/reference.h"
#include "base/error.h"

namespace sluice::backend::reference {

template <>
void run(const ops::KvAppend& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(const ops::Attention& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(const ops::MlaAppend& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}
template <>
void run(const ops::MlaAttention& op) {
  fail(ErrorKind::unsupported, "{}: not written yet", op.kName);
}

}  // namespace sluice::backend::reference
