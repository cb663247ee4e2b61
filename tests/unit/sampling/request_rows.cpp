#include "request_rows.h"

#include <algorithm>

namespace sluice::sampling {

namespace {

using ops::ConstView;
using ops::DType;
using ops::View;

std::size_t size(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

// The memory of an op for some requests; outputs are poisoned.
class RowFields {
 public:
  RowFields(const std::vector<RowRequest>& requests, const std::vector<std::int32_t>& slots)
      : pool_(static_cast<std::int64_t>(requests.size())),
        rows_(static_cast<std::int64_t>(slots.size())),
        vocab_(static_cast<std::int64_t>(requests[0].logits.size())),
        slots_(slots) {
    for (const RowRequest& request : requests)
      biases_ = std::max(biases_, static_cast<std::int64_t>(request.settings.logit_bias.size()));
    for (const std::int32_t slot : slots) {
      const RowRequest& request = requests[size(std::max(slot, 0))];
      logits_.insert(logits_.end(), request.logits.begin(), request.logits.end());
      positions_.push_back(static_cast<std::int32_t>(request.past.size()) - 1);
    }
    reals_.resize(size(6 * pool_));
    counts_.resize(size(pool_ * vocab_));
    bias_ids_.resize(size(pool_ * biases_), -1);
    bias_.resize(size(pool_ * biases_));
    allowed_.resize(size(pool_ * bytes()));
    ids_.resize(slots.size(), -7);
    logprob_.resize(slots.size(), 99);
    top_ids_.resize(slots.size() * 20, -99);
    top_logprobs_.resize(slots.size() * 20, 99);
    for (std::int64_t p = 0; p < pool_; ++p) set(p, requests[size(p)]);
  }

  ops::Sample op() {
    const auto real = [&](std::int64_t i) {
      return ConstView(&reals_[size(i * pool_)], DType::f32, {pool_});
    };
    ops::Sample op;
    op.logits = ConstView(logits_.data(), DType::f32, {rows_, vocab_});
    op.positions = View(positions_.data(), DType::i32, {rows_});
    op.ids = View(ids_.data(), DType::i32, {rows_});
    op.slots = ConstView(slots_.data(), DType::i32, {rows_});
    op.counts = View(counts_.data(), DType::i32, {pool_, vocab_});
    op.bias_ids = ConstView(bias_ids_.data(), DType::i32, {pool_, biases_});
    op.bias = ConstView(bias_.data(), DType::f32, {pool_, biases_});
    op.allowed = ConstView(allowed_.data(), DType::u8, {pool_, bytes()});
    op.logprob = View(logprob_.data(), DType::f32, {rows_});
    op.top_ids = View(top_ids_.data(), DType::i32, {rows_, 20});
    op.top_logprobs = View(top_logprobs_.data(), DType::f32, {rows_, 20});
    op.temperature = real(0);
    op.top_p = real(1);
    op.min_p = real(2);
    op.repetition_penalty = real(3);
    op.presence_penalty = real(4);
    op.frequency_penalty = real(5);
    op.top_k = ConstView(top_k_.data(), DType::i32, {pool_});
    op.logprobs = ConstView(logprobs_.data(), DType::i32, {pool_});
    op.seed = ConstView(seeds_.data(), DType::i32, {pool_, 2});
    return op;
  }

  RowResult result(std::int64_t t) const {
    RowResult result;
    result.id = ids_[size(t)];
    result.position = positions_[size(t)];
    result.logprob = logprob_[size(t)];
    result.top_ids.assign(top_ids_.begin() + t * 20, top_ids_.begin() + t * 20 + 20);
    result.top_logprobs.assign(top_logprobs_.begin() + t * 20, top_logprobs_.begin() + t * 20 + 20);
    const std::int64_t row = std::max(slots_[size(t)], 0) * vocab_;
    result.counts.assign(counts_.begin() + row, counts_.begin() + row + vocab_);
    return result;
  }

 private:
  std::int64_t bytes() const { return (vocab_ + 7) / 8; }
  void allow(std::int64_t p, std::int64_t id) {
    allowed_[size(p * bytes() + id / 8)] |= static_cast<std::uint8_t>(1 << id % 8);
  }
  void set(std::int64_t p, const RowRequest& request) {
    const SamplingSettings& s = request.settings;
    const double of[] = {s.temperature,      s.top_p, s.min_p, s.repetition_penalty, s.presence_penalty,
                         s.frequency_penalty};
    for (std::int64_t i = 0; i < 6; ++i) reals_[size(i * pool_ + p)] = static_cast<float>(of[i]);
    top_k_.push_back(s.top_k);
    logprobs_.push_back(s.logprobs);
    seeds_.push_back(static_cast<std::int32_t>(s.seed));
    seeds_.push_back(static_cast<std::int32_t>(s.seed >> 32));
    for (const std::int32_t id : request.past) ++counts_[size(p * vocab_ + id)];
    for (std::size_t i = 0; i < s.logit_bias.size(); ++i) {
      bias_ids_[size(p * biases_) + i] = s.logit_bias[i].first;
      bias_[size(p * biases_) + i] = static_cast<float>(s.logit_bias[i].second);
    }
    for (std::int64_t id = 0; request.allowed.empty() && id < vocab_; ++id) allow(p, id);
    for (const std::int32_t id : request.allowed) allow(p, id);
  }

  std::int64_t pool_;
  std::int64_t rows_;
  std::int64_t vocab_;
  std::int64_t biases_ = 1;
  std::vector<std::int32_t> slots_;
  std::vector<float> logits_;
  std::vector<std::int32_t> positions_;
  std::vector<float> reals_;  // the settings one after the other
  std::vector<std::int32_t> top_k_;
  std::vector<std::int32_t> logprobs_;
  std::vector<std::int32_t> seeds_;
  std::vector<std::int32_t> counts_;
  std::vector<std::int32_t> bias_ids_;
  std::vector<float> bias_;
  std::vector<std::uint8_t> allowed_;
  std::vector<std::int32_t> ids_;
  std::vector<float> logprob_;
  std::vector<std::int32_t> top_ids_;
  std::vector<float> top_logprobs_;
};

}  // namespace

std::vector<RowResult> run_rows(ops::Backend& backend, const std::vector<RowRequest>& requests,
                                const std::vector<std::int32_t>& slots) {
  RowFields fields(requests, slots);
  backend.run(fields.op());
  std::vector<RowResult> results;
  for (std::int64_t t = 0; t < static_cast<std::int64_t>(slots.size()); ++t)
    results.push_back(fields.result(t));
  return results;
}

RowResult run_row(ops::Backend& backend, const RowRequest& request) {
  return run_rows(backend, {request}, {0})[0];
}

}  // namespace sluice::sampling
