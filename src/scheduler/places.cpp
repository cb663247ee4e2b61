#include "scheduler/places.h"

#include <algorithm>
#include <utility>

namespace sluice::scheduler {

class Places::Pages final : public PageOwner {
 public:
  explicit Pages(state::StatePool& pool) : pool_(pool) {}
  std::int64_t rows() const override { return state::kPageRows; }
  void hold(std::int32_t page) override { pool_.hold(page); }
  void drop(std::int32_t page) override { pool_.drop(page); }
  bool shared(std::int32_t page) const override { return pool_.shared(page); }

 private:
  state::StatePool& pool_;
};

Places::Places(engine::Core& core, const SchedulerOptions& settled)
    : executor_(*core.executor),
      group_(executor_.reserve({settled.parallel, settled.context, state::pages_for(settled.cache_tokens)})),
      states_(core.summary.state_bytes > 0),
      spacing_(settled.state_spacing),
      owner_(std::make_unique<Pages>(group_->pass.pool())) {
  if (settled.remember_prompts)
    tree_.emplace(*owner_, PrefixTreeOptions{.states = states_, .state_bytes = settled.state_memory});
}

bool Places::make_free(std::int64_t pages) {
  while (free_pages() < pages)
    if (!tree_ || !tree_->evict_page()) return false;
  return true;
}

bool Places::forget_shared(const Sequence& sequence) {
  const std::vector<std::int32_t>& own = group_->pass.pool().pages(sequence.slot->number());
  const auto next = static_cast<std::size_t>(sequence.past / state::kPageRows);
  return tree_ && next < own.size() && tree_->forget_page(own[next]);
}

std::int64_t Places::missing_pages(const Sequence& sequence, std::int64_t added) const {
  return group_->pass.pool().missing_pages(sequence.slot->number(), sequence.past, added);
}

void Places::open(Sequence& sequence) {
  sequence.slot.emplace(executor_.open(group_));
  sequence.follows = false;
  ++taken_;
  if (sequence.past == 0) return recall(sequence);
  make_free(state::pages_for(sequence.past));
  const std::vector<std::byte> saved = std::exchange(sequence.saved, {});
  executor_.run([&] { pass().pool().load(sequence.slot->number(), sequence.past, true, saved); });
}

namespace {

PromptReport report(const PrefixTree::Match& match, std::int64_t tokens) {
  using Reason = PromptReport::Reason;
  PromptReport report{tokens, match.rows, match.common, Reason::differs};
  const std::int64_t usable = std::min(match.common, tokens - 1) / kChunkUnit * kChunkUnit;
  if (match.rows < usable) report.reason = match.evicted ? Reason::evicted : Reason::unsaved;
  if (tokens - match.rows <= kChunkUnit) report.reason = Reason::end;
  return report;
}

// The end of the prompt, where it parts from one before, and some on the way.
void add_points(Sequence& sequence, std::int64_t spacing) {
  const PromptReport& found = sequence.report;
  std::vector<std::int64_t>& points = sequence.save_at;
  for (std::int64_t at = found.cached / spacing * spacing + spacing; at < found.tokens; at += spacing)
    points.push_back(at);
  points.push_back(found.common / kChunkUnit * kChunkUnit);
  points.push_back(found.tokens / kChunkUnit * kChunkUnit);
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  std::erase_if(points, [&](std::int64_t at) { return at <= found.cached; });
}

}  // namespace

void Places::recall(Sequence& sequence) {
  if (!tree_) return;
  const PrefixTree::Match match =
      tree_->find(sequence.request.cache_salt, sequence.tokens, sequence.prompt - 1);
  if (sequence.past == 0 || match.rows > sequence.past) sequence.report = report(match, sequence.prompt);
  if (states_) add_points(sequence, spacing_);
  if (match.rows <= sequence.past) return;
  executor_.run([&] {
    pass().pool().adopt(sequence.slot->number(), match.pages);
    if (states_) pass().pool().load(sequence.slot->number(), match.rows, false, *match.state);
  });
  sequence.past = match.rows;
  std::erase_if(sequence.save_at, [&](std::int64_t at) { return at <= match.rows; });
}

void Places::remember(const Sequence& sequence) {
  if (!tree_) return;
  const auto prompt = std::span(sequence.tokens).first(static_cast<std::size_t>(sequence.prompt));
  const std::int64_t rows = std::min(sequence.past, sequence.prompt) / kChunkUnit * kChunkUnit;
  if (rows > 0 && (!states_ || rows == sequence.past)) {
    const std::int64_t slot = sequence.slot->number();
    SavedState state;
    if (states_)
      state = std::make_shared<const std::vector<std::byte>>(
          executor_.run([&] { return pass().pool().save(slot, rows, false); }));
    tree_->insert(sequence.request.cache_salt, prompt, rows, pass().pool().pages(slot), std::move(state));
  }
  if (!sequence.reading()) tree_->note(sequence.request.cache_salt, prompt);
}

void Places::close(Sequence& sequence) {
  if (!sequence.slot) return;
  sequence.slot.reset();
  --taken_;
}

void Places::suspend(Sequence& sequence) {
  if (sequence.past > 0)
    sequence.saved =
        executor_.run([&] { return pass().pool().save(sequence.slot->number(), sequence.past, true); });
  close(sequence);
}

}  // namespace sluice::scheduler
