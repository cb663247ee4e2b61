#include "sampling/row_settings.h"

namespace sluice::sampling {

namespace {

double at(const ops::RowValue<double>& setting, std::int64_t slot) {
  return setting.per_row.present() ? static_cast<const float*>(setting.per_row.data)[slot] : setting.value;
}
std::int64_t at(const ops::RowValue<std::int64_t>& setting, std::int64_t slot) {
  return setting.per_row.present() ? static_cast<const std::int32_t*>(setting.per_row.data)[slot]
                                   : setting.value;
}
std::uint64_t at(const ops::RowValue<std::uint64_t>& setting, std::int64_t slot) {
  if (!setting.per_row.present()) return setting.value;
  const auto* words = static_cast<const std::uint32_t*>(setting.per_row.data) + 2 * slot;
  return words[0] | static_cast<std::uint64_t>(words[1]) << 32;
}

}  // namespace

std::int64_t slot_of(const ops::Sample& op, std::int64_t row) {
  return op.slots.present() ? static_cast<const std::int32_t*>(op.slots.data)[row] : row;
}

RowSettings row_settings(const ops::Sample& op, std::int64_t slot) {
  RowSettings settings;
  settings.draw = {at(op.temperature, slot), at(op.top_k, slot), at(op.top_p, slot), at(op.min_p, slot)};
  settings.seed = at(op.seed, slot);
  settings.penalties = {static_cast<float>(at(op.repetition_penalty, slot)),
                        static_cast<float>(at(op.presence_penalty, slot)),
                        static_cast<float>(at(op.frequency_penalty, slot))};
  settings.logprobs = at(op.logprobs, slot);
  return settings;
}

}  // namespace sluice::sampling
