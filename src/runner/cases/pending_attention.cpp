#include "runner/case.h"
#include "sluice/ops/ops.h"

namespace sluice::runner {

template <>
std::vector<Case> cases<ops::KvAppend>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::KvAppend>() {
  return {};
}
template <>
std::vector<Case> cases<ops::Attention>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::Attention>() {
  return {};
}
template <>
std::vector<Case> cases<ops::MlaAppend>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::MlaAppend>() {
  return {};
}
template <>
std::vector<Case> cases<ops::MlaAttention>() {
  return {};
}
template <>
std::vector<BenchCase> bench_cases<ops::MlaAttention>() {
  return {};
}

}  // namespace sluice::runner
