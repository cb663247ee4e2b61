#include "runner/case.h"
#include "sluice/ops/ops.h"

namespace sluice::runner {

template <>
std::vector<Case> cases<ops::CausalConv1d>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::CausalConv1d>() {
  return {};
}
template <>
std::vector<Case> cases<ops::DeltaGates>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::DeltaGates>() {
  return {};
}
template <>
std::vector<Case> cases<ops::DeltaRule>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::DeltaRule>() {
  return {};
}
template <>
std::vector<Case> cases<ops::DeltaKkt>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::DeltaKkt>() {
  return {};
}

}  // namespace sluice::runner
