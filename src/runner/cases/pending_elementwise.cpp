#include "runner/case.h"
#include "sluice/ops/ops.h"

namespace sluice::runner {

template <>
std::vector<Case> cases<ops::Swiglu>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::Swiglu>() {
  return {};
}
template <>
std::vector<Case> cases<ops::Add>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::Add>() {
  return {};
}
template <>
std::vector<Case> cases<ops::SigmoidGate>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::SigmoidGate>() {
  return {};
}
template <>
std::vector<Case> cases<ops::AddRmsNorm>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::AddRmsNorm>() {
  return {};
}
template <>
std::vector<Case> cases<ops::GatedRmsNorm>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::GatedRmsNorm>() {
  return {};
}
template <>
std::vector<Case> cases<ops::QkL2Norm>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::QkL2Norm>() {
  return {};
}
template <>
std::vector<Case> cases<ops::Rope>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::Rope>() {
  return {};
}
template <>
std::vector<Case> cases<ops::SplitQGate>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::SplitQGate>() {
  return {};
}
template <>
std::vector<Case> cases<ops::RouteSoftmax>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::RouteSoftmax>() {
  return {};
}
template <>
std::vector<Case> cases<ops::RouteSigmoid>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::RouteSigmoid>() {
  return {};
}
template <>
std::vector<Case> cases<ops::MoeCombine>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::MoeCombine>() {
  return {};
}
template <>
std::vector<Case> cases<ops::MoeScatterAdd>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::MoeScatterAdd>() {
  return {};
}
template <>
std::vector<Case> cases<ops::MlaSplit>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::MlaSplit>() {
  return {};
}

}  // namespace sluice::runner
