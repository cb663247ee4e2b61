#include "runner/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "runner/bound_op.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

using ops::DType;

bool is_float(DType type) {
  return type == DType::f32 || type == DType::bf16;
}

HostTensor widen(const HostTensor& tensor) {
  HostTensor wide(DType::f32, tensor.shape);
  for (std::int64_t i = 0; i < tensor.shape.elements(); ++i) set(wide, i, tensor.at(i));
  return wide;
}

bool has_bf16(const OpFile& file) {
  return std::any_of(file.tensors.begin(), file.tensors.end(), [](const auto& entry) {
    return entry.second.dtype == DType::bf16 && entry.first.find('.') == std::string::npos;
  });
}

// Activations and caches as F32; the parts of weights ("w.scales") keep their types.
OpFile widen(const OpFile& file) {
  OpFile wide = file;
  for (auto& [name, tensor] : wide.tensors)
    if (tensor.dtype == DType::bf16 && name.find('.') == std::string::npos) tensor = widen(tensor);
  return wide;
}

constexpr std::int64_t kFew = 2048;

// How often a device rounds to BF16 on the way to a result, because its matrix units take nothing wider:
// unpacked weights, attention probabilities, and the result. A host rounds the result only.
int roundings(const ops::Backend& backend, std::string_view op) {
  if (backend.traits().host_memory) return 1;
  if (op == "gate_up_swiglu" || op == "expert_gate_up_swiglu") return 3;
  for (const std::string_view product : {"matmul", "expert_matmul", "mla_absorb_q", "mla_project_out",
                                         "attention", "mla_attention", "turboquant_attention"})
    if (op == product) return 2;
  return 1;
}

// Relative L2 for F32 fields. Activations rounded to fifteen bits have an error of 4e-5, and so do products,
// except for the few numbers of the smallest cases.
double limit_of(const ops::Backend& backend) {
  return backend.exact() ? 1e-5 : 2.5e-4;
}

}  // namespace

double relative_l2(const HostTensor& a, const HostTensor& b) {
  double difference = 0;
  double size = 0;
  for (std::int64_t i = 0; i < b.shape.elements(); ++i) {
    const double x = a.at(i);
    const double y = b.at(i);
    if (x == y) {
      if (std::isfinite(y)) size += y * y;
      continue;
    }
    if (!std::isfinite(x) || !std::isfinite(y)) return std::numeric_limits<double>::quiet_NaN();
    difference += (x - y) * (x - y);
    size += y * y;
  }
  if (difference == 0) return 0;
  return size == 0 ? std::numeric_limits<double>::infinity() : std::sqrt(difference / size);
}

Verdict compare(ops::Backend& backend, ops::Backend& reference, std::string_view op, const OpFile& inputs) {
  const OpFile given = run_op(backend, op, inputs);
  const OpFile expected = run_op(reference, op, inputs);
  const bool rounded = has_bf16(inputs);
  const OpFile exact = rounded ? run_op(reference, op, widen(inputs)) : OpFile{};
  Verdict verdict;
  verdict.pass = true;
  verdict.limit = rounded ? 1e-2 : limit_of(backend);
  for (const auto& [name, want] : expected.tensors) {
    const HostTensor& have = given.tensors.at(name);
    if (!is_float(want.dtype)) {
      if (have.bytes == want.bytes) continue;
      verdict.pass = false;
      verdict.detail = fmt::format("integer output '{}' differs", name);
      continue;
    }
    const HostTensor& truth = rounded ? exact.tensors.at(name) : want;
    const double error = relative_l2(have, truth);
    // Errors of independent roundings add in quadrature.
    const double once = 1.3 * std::sqrt(roundings(backend, op)) * relative_l2(want, truth);
    // For few numbers, some of them small sums of large terms, the rounding of the result is no measure of
    // the error.
    const bool few = roundings(backend, op) > 1 && want.shape.elements() < kFew;
    const double limit = !rounded ? limit_of(backend) : few ? 1e-2 : std::min(1e-2, once + limit_of(backend));
    if (!(error <= limit)) {  // NaN fails too
      verdict.pass = false;
      verdict.detail = fmt::format("output '{}': relative L2 {:.3g}, limit {:.3g}", name, error, limit);
      verdict.limit = limit;
    }
    verdict.error = std::isnan(error) ? error : std::max(verdict.error, error);
  }
  return verdict;
}

}  // namespace sluice::runner
