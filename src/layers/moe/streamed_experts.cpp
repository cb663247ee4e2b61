#include "layers/moe/streamed_experts.h"

#include <algorithm>
#include <cstring>

#include "layers/moe.h"

namespace sluice::layers::moe {

namespace {

// Choices (token t, place j in its list) by expert.
class Choices {
 public:
  explicit Choices(const ops::View& chosen) : places_(static_cast<std::size_t>(chosen.dim(1))) {
    const auto* ids = static_cast<const std::int32_t*>(chosen.data);
    for (std::int64_t i = 0; i < chosen.elements(); ++i)
      choices_.push_back({ids[i], static_cast<std::int32_t>(i)});
    std::sort(choices_.begin(), choices_.end(), [](const Choice& a, const Choice& b) {
      return a.expert != b.expert ? a.expert < b.expert : a.index < b.index;
    });
    for (const Choice& choice : choices_)
      if (experts_.empty() || experts_.back() != choice.expert) experts_.push_back(choice.expert);
  }

  const std::vector<std::int32_t>& experts() const { return experts_; }
  // f(index of [T,k]) for an expert's choices.
  template <class F>
  void for_each(std::int32_t expert, F&& f) const {
    auto choice = std::lower_bound(choices_.begin(), choices_.end(), expert,
                                   [](const Choice& c, std::int32_t e) { return c.expert < e; });
    for (; choice != choices_.end() && choice->expert == expert; ++choice)
      f(static_cast<std::size_t>(choice->index));
  }
  std::size_t places() const { return places_; }

 private:
  struct Choice {
    std::int32_t expert;
    std::int32_t index;
  };
  std::size_t places_;
  std::vector<Choice> choices_;
  std::vector<std::int32_t> experts_;  // distinct, rising
};

// Rows gathered for one call of the two ops, and their results scattered.
class Rows {
 public:
  Rows(Device& dev, const ops::View& h, const ops::View& expert_out, std::int64_t inner)
      : dev_(dev),
        h_(static_cast<const std::byte*>(h.data)),
        out_(static_cast<std::byte*>(expert_out.data)),
        row_bytes_(static_cast<std::size_t>(h.dim(1)) * size_bytes(h.dtype)),
        most_(std::max(h.dim(0), expert_out.dim(1))),
        rows_(dev.take({most_, h.dim(1)})),
        inner_(dev.take({most_, 1, inner})),
        ids_(dev.take({most_, 1}, ops::DType::i32)) {}

  // Adds one choice: row `token` of h, result `index` of [T,k].
  void add(const experts::Expert& expert, std::size_t token, std::size_t index) {
    if (count() == most_) compute();
    if (gate_.empty() || gate_.back().values.data != expert.gate_proj.values.data) {
      gate_.push_back(expert.gate_proj);
      up_.push_back(expert.up_proj);
      down_.push_back(expert.down_proj);
    }
    std::memcpy(static_cast<std::byte*>(rows_.data) + targets_.size() * row_bytes_, h_ + token * row_bytes_,
                row_bytes_);
    static_cast<std::int32_t*>(ids_.data)[targets_.size()] = static_cast<std::int32_t>(gate_.size() - 1);
    targets_.push_back(index);
  }

  void compute() {
    if (targets_.empty()) return;
    const ops::View inner = inner_.rows(0, count());
    const ops::View ids = ids_.rows(0, count());
    // The gathered rows are no longer needed when their results come.
    const ops::View rows = rows_.rows(0, count());
    const ops::View results = rows.reshaped({count(), 1, rows.dim(1)});
    dev_.run(ops::ExpertGateUpSwiglu{.x = rows,
                                     .gate_w = {.stack = {}, .separate = gate_},
                                     .up_w = {.stack = {}, .separate = up_},
                                     .experts = ids,
                                     .out = inner});
    dev_.run(
        ops::ExpertMatmul{.x = inner, .w = {.stack = {}, .separate = down_}, .experts = ids, .out = results});
    for (std::size_t i = 0; i < targets_.size(); ++i)
      std::memcpy(out_ + targets_[i] * row_bytes_, static_cast<const std::byte*>(rows.data) + i * row_bytes_,
                  row_bytes_);
    targets_.clear();
    gate_.clear();
    up_.clear();
    down_.clear();
  }

 private:
  std::int64_t count() const { return static_cast<std::int64_t>(targets_.size()); }

  Device& dev_;
  const std::byte* h_;
  std::byte* out_;
  std::size_t row_bytes_;
  std::int64_t most_;
  ops::View rows_;
  ops::View inner_;
  ops::View ids_;
  std::vector<std::size_t> targets_;
  std::vector<ops::Weight> gate_;
  std::vector<ops::Weight> up_;
  std::vector<ops::Weight> down_;
};

}  // namespace

// Tokens that choose more than there are slots for keep the disk busy without guesses.
void StreamedExperts::read_ahead(Device& dev, const ops::View& x, experts::Cache::Pass& pass) const {
  if (!foresight.present() || x.dim(0) * foresight.router.top_k > cache->slots() || !pass.trusts_guesses())
    return;
  const Scope scope = dev.scope();
  const ops::View guessed = foresight.guess(dev, x);
  pass.read_ahead(layer + 1, std::span(static_cast<const std::int32_t*>(guessed.data),
                                       static_cast<std::size_t>(guessed.elements())));
}

void StreamedExperts::compute(Device& dev, const Input& in, const ops::View& chosen,
                              const ops::View& expert_out, FunctionRef<void()> meanwhile) const {
  const Scope scope = dev.scope();
  Rows rows(dev, in.h, expert_out, cache->store().layer(layer).gate_proj.shape()[1]);
  if (dev.planning()) {
    if (foresight.present()) foresight.guess(dev, in.x);
    return meanwhile();
  }
  const Choices choices(chosen);
  experts::Cache::Pass pass(*cache, layer, choices.experts());
  read_ahead(dev, in.x, pass);
  meanwhile();
  for (auto residents = pass.next(); !residents.empty(); residents = pass.next()) {
    for (const experts::Cache::Resident& resident : residents)
      choices.for_each(resident.expert, [&](std::size_t index) {
        rows.add(resident.weights, index / choices.places(), index);
      });
    rows.compute();
  }
}

void StreamedExperts::forward(Device& dev, const Moe& moe, const Input& in) const {
  const std::int64_t tokens = in.h.dim(0);
  const std::int64_t k = moe.router.top_k;
  const ops::View chosen = dev.take({tokens, k}, ops::DType::i32);
  const ops::View weights = dev.take({tokens, k}, ops::DType::f32);
  const ops::View out = dev.take({tokens, k, in.x.dim(1)});
  const ops::View shared_out = moe.take_shared(dev, in.h);
  moe.router.choose(dev, in.logits, chosen, weights);
  compute(dev, in, chosen, out, [&] { moe.project_shared(dev, in.h, shared_out); });
  moe.combine(dev, in, out, weights, shared_out);
}

}  // namespace sluice::layers::moe
