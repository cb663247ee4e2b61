#include "runner/case.h"
#include "sluice/ops/ops.h"

namespace sluice::runner {

template <>
std::vector<Case> cases<ops::Hadamard>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::Hadamard>() {
  return {};
}
template <>
std::vector<Case> cases<ops::TurboquantEncode>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::TurboquantEncode>() {
  return {};
}
template <>
std::vector<Case> cases<ops::TurboquantDecode>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::TurboquantDecode>() {
  return {};
}
template <>
std::vector<Case> cases<ops::TurboquantAppend>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::TurboquantAppend>() {
  return {};
}
template <>
std::vector<Case> cases<ops::TurboquantAttention>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::TurboquantAttention>() {
  return {};
}

}  // namespace sluice::runner
