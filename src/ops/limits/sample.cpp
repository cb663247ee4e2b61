// Requirements of `sample` beyond shapes.
#include "sluice/ops/routing/sample.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/integer_cast.h"
#include "ops/limits/rules.h"

namespace sluice::ops {

namespace {

template <class T>
T entry(const ConstView& view, std::int64_t row, std::int64_t column = 0) {
  return static_cast<const T*>(view.data)[row * view.strides[0] + column];
}

// One setting with its limits; its entries are checked if the host can read them.
struct Limits {
  std::string_view name;
  bool (*allows)(double);
  std::string_view allowed;
};

template <class T>
void check_setting(const RowValue<T>& setting, const Limits& limits, bool host_memory) {
  const auto refuse = [&](const std::string& what, double given) {
    fail(ErrorKind::input, "{}: {} is {}, allowed is {}", Sample::kName, what, given, limits.allowed);
  };
  const ConstView& rows = setting.per_row;
  if (!rows.present()) {
    if (const double value = setting.value; !limits.allows(value))
      refuse(fmt::format("attribute '{}'", limits.name), value);
    return;
  }
  for (std::int64_t p = 0; host_memory && p < rows.dim(0); ++p) {
    const double value = rows.dtype == DType::f32 ? static_cast<double>(entry<float>(rows, p))
                                                  : to_double(entry<std::int32_t>(rows, p));
    if (!limits.allows(value)) refuse(fmt::format("field '{}' at [{}]", limits.name, p), value);
  }
}

void check_settings(const Sample& op, bool host_memory) {
  const auto finite = [](double x) { return std::isfinite(x); };
  check_setting(op.temperature,
                {"temperature", [](double x) { return x >= 0 && std::isfinite(x); }, "0 or more"},
                host_memory);
  check_setting(op.top_k, {"top_k", [](double x) { return x >= 0; }, "0 (all) or more"}, host_memory);
  check_setting(op.top_p, {"top_p", [](double x) { return x > 0 && x <= 1; }, "above 0, at most 1"},
                host_memory);
  check_setting(op.min_p, {"min_p", [](double x) { return x >= 0 && x <= 1; }, "0 to 1"}, host_memory);
  check_setting(op.repetition_penalty,
                {"repetition_penalty", [](double x) { return std::isfinite(x) && static_cast<float>(x) > 0; },
                 "above 0"},
                host_memory);
  check_setting(op.presence_penalty, {"presence_penalty", finite, "a finite number"}, host_memory);
  check_setting(op.frequency_penalty, {"frequency_penalty", finite, "a finite number"}, host_memory);
  check_setting(
      op.logprobs,
      {"logprobs", [](double x) { return x >= -1 && x <= Sample::kMostLogprobs; }, "-1 (none) to 20"},
      host_memory);
}

// Checks which fields must be given together, and how many entries the settings have.
void check_presence(const Sample& op, const Dims& dims) {
  const auto together = [](const auto& a, std::string_view a_name, const auto& b, std::string_view b_name) {
    if (a.present() != b.present())
      fail(ErrorKind::input, "{}: field '{}' is given without '{}'", Sample::kName,
           a.present() ? a_name : b_name, a.present() ? b_name : a_name);
  };
  together(op.bias_ids, "bias_ids", op.bias, "bias");
  together(op.top_ids, "top_ids", op.top_logprobs, "top_logprobs");
  const auto changes = [](const RowValue<double>& penalty, double none) {
    return penalty.per_row.present() || penalty.value != none;
  };
  if (!op.counts.present() && (changes(op.repetition_penalty, 1) || changes(op.presence_penalty, 0) ||
                               changes(op.frequency_penalty, 0)))
    fail(ErrorKind::input, "{}: a penalty is given without the field 'counts'", Sample::kName);
  if (dims["P"] < 0 && op.slots.present())
    fail(ErrorKind::input, "{}: field 'slots' is given, but none that it chooses from", Sample::kName);
  if (dims["P"] >= 0 && !op.slots.present() && dims["P"] != dims["T"])
    fail(ErrorKind::input, "{}: there are settings of {} rows for {} rows of 'logits', and no 'slots'",
         Sample::kName, dims["P"], dims["T"]);
}

void check_slots(const Sample& op, std::int64_t pool) {
  std::vector<bool> taken(to_size(pool));
  for (std::int64_t t = 0; t < op.slots.dim(0); ++t) {
    const auto slot = entry<std::int32_t>(op.slots, 0, t);
    if (slot < -1 || slot >= pool)
      fail(ErrorKind::input, "{}: field 'slots' has {} at {}, allowed is -1 (none) to {}", Sample::kName,
           slot, t, pool - 1);
    if (slot < 0) continue;
    if (op.counts.present() && taken[to_size(slot)])
      fail(ErrorKind::input, "{}: field 'slots' names {} twice, rows must not share counts", Sample::kName,
           slot);
    taken[to_size(slot)] = true;
  }
}

void check_biases(const Sample& op, std::int64_t vocab) {
  std::vector<std::int32_t> ids;
  for (std::int64_t p = 0; p < op.bias_ids.dim(0); ++p) {
    ids.clear();
    for (std::int64_t i = 0; i < op.bias_ids.dim(1); ++i) {
      const auto id = entry<std::int32_t>(op.bias_ids, p, i);
      if (id < -1 || id >= vocab)
        fail(ErrorKind::input, "{}: field 'bias_ids' has {} at [{},{}], allowed is -1 (none) to {}",
             Sample::kName, id, p, i, vocab - 1);
      if (id < 0) continue;
      ids.push_back(id);
      if (const auto value = entry<float>(op.bias, p, i); !std::isfinite(value))
        fail(ErrorKind::input, "{}: field 'bias' is {} at [{},{}], it must be finite", Sample::kName, value,
             p, i);
    }
    std::sort(ids.begin(), ids.end());
    if (const auto twice = std::adjacent_find(ids.begin(), ids.end()); twice != ids.end())
      fail(ErrorKind::input, "{}: field 'bias_ids' names token {} twice in row {}", Sample::kName, *twice, p);
  }
}

void check_allowed(const Sample& op, std::int64_t row, std::int64_t slot, std::int64_t vocab) {
  const auto* bits = static_cast<const std::uint8_t*>(op.allowed.data) + slot * op.allowed.strides[0];
  const unsigned last = vocab % 8 == 0 ? 0 : bits[vocab / 8] & ((1u << vocab % 8) - 1);
  if (last == 0 && std::all_of(bits, bits + vocab / 8, [](std::uint8_t byte) { return byte == 0; }))
    fail(ErrorKind::input, "{}: field 'allowed' allows no token in row {}", Sample::kName, row);
}

}  // namespace

void Sample::check_limits(const Dims& dims, bool host_memory) const {
  check_presence(*this, dims);
  check_settings(*this, host_memory);
  if (!host_memory) return;
  if (slots.present()) check_slots(*this, dims["P"]);
  if (bias_ids.present()) check_biases(*this, dims["V"]);
  for (std::int64_t row = 0; row < dims["T"]; ++row) {
    const std::int64_t slot = slots.present() ? entry<std::int32_t>(slots, 0, row) : row;
    if (slot < 0) continue;
    check_no_nan(kName, logits, row);
    if (allowed.present()) check_allowed(*this, row, slot, dims["V"]);
  }
}

}  // namespace sluice::ops
