#include "sampling/sample_row.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/integer_cast.h"
#include "sampling/argmax.h"
#include "sampling/logprobs.h"
#include "sampling/row_settings.h"

namespace sluice::sampling {

namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();

template <class T, class AnyView>
auto* row_of(const AnyView& view, std::int64_t row) {
  using Element = std::conditional_t<std::is_same_v<AnyView, ops::View>, T, const T>;
  return static_cast<Element*>(view.data) + row * view.strides[0];
}

bool allowed(const std::uint8_t* bits, std::int64_t id) {
  return (bits[id / 8] >> id % 8 & 1) != 0;
}

bool allows_all(const std::uint8_t* bits, std::int64_t vocab) {
  for (std::int64_t i = vocab / 8 * 8; i < vocab; ++i)
    if (!allowed(bits, i)) return false;
  return std::all_of(bits, bits + vocab / 8, [](std::uint8_t byte) { return byte == 0xff; });
}

// A row's logits after penalties, bias and mask; if none applies, the original logits in place.
class AdjustedRow {
 public:
  AdjustedRow(const ops::Sample& op, std::int64_t row, std::int64_t slot, const Penalties& penalties)
      : logits_(row_of<float>(op.logits, row), to_size(op.logits.dim(1))) {
    if (penalties.any()) penalise(row_of<std::int32_t>(op.counts, slot), penalties);
    for (std::int64_t i = 0; op.bias_ids.present() && i < op.bias_ids.dim(1); ++i)
      if (const std::int32_t id = row_of<std::int32_t>(op.bias_ids, slot)[i]; id >= 0)
        own()[to_size(id)] += row_of<float>(op.bias, slot)[i];
    if (op.allowed.present()) mask(row_of<std::uint8_t>(op.allowed, slot));
  }

  AdjustedRow(const AdjustedRow&) = delete;
  AdjustedRow& operator=(const AdjustedRow&) = delete;

  std::span<const float> logits() const { return logits_; }
  // The first maximum that is not masked.
  std::size_t best() const {
    std::size_t at = largest(logits_);
    while (bits_ != nullptr && !allowed(bits_, static_cast<std::int64_t>(at))) ++at;
    return at;
  }

 private:
  std::vector<float>& own() {
    if (changed_.empty()) changed_.assign(logits_.begin(), logits_.end());
    logits_ = changed_;
    return changed_;
  }
  void penalise(const std::int32_t* counts, const Penalties& penalties) {
    std::vector<float>& logits = own();
    for (std::size_t i = 0; i < logits.size(); ++i)
      if (counts[i] > 0) logits[i] = penalised(logits[i], counts[i], penalties);
  }
  void mask(const std::uint8_t* bits) {
    const auto vocab = std::ssize(logits_);
    if (allows_all(bits, vocab)) return;
    bits_ = bits;
    std::vector<float>& logits = own();
    for (std::int64_t i = 0; i < vocab; ++i)
      if (!allowed(bits, i)) logits[to_size(i)] = kImpossible;
  }

  std::vector<float> changed_;
  std::span<const float> logits_;
  const std::uint8_t* bits_ = nullptr;
};

// Writes what was requested about the choice, and placeholders for the rest. A row that is left out has no
// logits.
void report(const ops::Sample& op, std::int64_t row, std::span<const float> logits, std::int64_t wanted) {
  const bool any = wanted >= 0 && !logits.empty();
  const auto fill = [&](std::size_t from) {
    if (!op.top_ids.present()) return;
    for (std::int64_t i = from; i < ops::Sample::kMostLogprobs; ++i) {
      row_of<std::int32_t>(op.top_ids, row)[i] = -1;
      row_of<float>(op.top_logprobs, row)[i] = kImpossible;
    }
  };
  if (!any) {
    if (op.logprob.present()) *row_of<float>(op.logprob, row) = kImpossible;
    return fill(0);
  }
  const Logprobs logprobs(logits);
  if (op.logprob.present())
    *row_of<float>(op.logprob, row) = static_cast<float>(logprobs[*row_of<std::int32_t>(op.ids, row)]);
  if (!op.top_ids.present()) return;
  const std::vector<TokenLogprob> top = logprobs.top(to_size(wanted));
  for (std::size_t i = 0; i < top.size(); ++i) {
    row_of<std::int32_t>(op.top_ids, row)[i] = top[i].id;
    row_of<float>(op.top_logprobs, row)[i] = static_cast<float>(top[i].logprob);
  }
  fill(top.size());
}

}  // namespace

void sample_row(const ops::Sample& op, std::int64_t row) {
  const std::int64_t slot = slot_of(op, row);
  if (slot < 0) return report(op, row, {}, -1);
  const RowSettings settings = row_settings(op, slot);
  const AdjustedRow adjusted(op, row, slot, settings.penalties);
  const std::span<const float> logits = adjusted.logits();
  std::int32_t& position = *row_of<std::int32_t>(op.positions, row);
  std::int32_t& id = *row_of<std::int32_t>(op.ids, row);
  ++position;
  const std::size_t best = adjusted.best();
  id = best;
  if (settings.draw.temperature > 0 && std::isfinite(logits[best]))
    id = draw(logits, settings.draw, settings.seed, static_cast<std::uint64_t>(position));
  if (settings.penalties.any()) ++row_of<std::int32_t>(op.counts, slot)[id];
  report(op, row, logits, settings.logprobs);
}

}  // namespace sluice::sampling
