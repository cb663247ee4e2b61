#include "runner/case.h"
#include "sluice/ops/ops.h"

namespace sluice::runner {

template <>
std::vector<Case> cases<ops::Embed>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::Embed>() {
  return {};
}
template <>
std::vector<Case> cases<ops::Matmul>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::Matmul>() {
  return {};
}
template <>
std::vector<Case> cases<ops::ExpertMatmul>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::ExpertMatmul>() {
  return {};
}
template <>
std::vector<Case> cases<ops::GateUpSwiglu>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::GateUpSwiglu>() {
  return {};
}
template <>
std::vector<Case> cases<ops::ExpertGateUpSwiglu>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::ExpertGateUpSwiglu>() {
  return {};
}
template <>
std::vector<Case> cases<ops::MlaAbsorbQ>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::MlaAbsorbQ>() {
  return {};
}
template <>
std::vector<Case> cases<ops::MlaProjectOut>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::MlaProjectOut>() {
  return {};
}

}  // namespace sluice::runner
