#include "scheduler/places.h"

#include <algorithm>
#include <utility>

#include "scheduler/prefix/identity.h"
#include "sluice/error.h"

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
      message_ends_(core.stop_ids),
      spacing_(settled.state_spacing),
      owner_(std::make_unique<Pages>(group_->pass.pool())) {
  if (settled.remember_prompts)
    tree_.emplace(*owner_, PrefixTreeOptions{.states = states_, .state_bytes = settled.cache_memory});
  if (tree_ && !settled.cache_folder.empty()) open_disk(core, settled);
}

void Places::open_disk(engine::Core& core, const SchedulerOptions& settled) {
  const state::StatePool& pool = pass().pool();
  if (pool.replica() != nullptr)
    throw Error(ErrorKind::unsupported,
                "prompts are not remembered in files where several nodes share a model");
  disk_.emplace(DiskOptions{.folder = settled.cache_folder,
                            .bytes = settled.cache_folder_bytes,
                            .fingerprint = identity(core, group_),
                            .row_bytes = pool.block_bytes(),
                            .state_bytes = states_ ? pool.saved_bytes(0, false) : 0,
                            .log = settled.log});
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

PromptReport::Reason reason_of(const PromptReport& report, bool evicted) {
  using Reason = PromptReport::Reason;
  if (report.tokens - report.cached <= kChunkUnit) return Reason::end;
  const std::int64_t usable = std::min(report.common, report.tokens - 1) / kChunkUnit * kChunkUnit;
  if (report.cached == usable) return Reason::differs;
  return evicted ? Reason::evicted : Reason::unsaved;
}

PromptReport report(const PrefixTree::Match& match, std::int64_t tokens) {
  PromptReport report{
      .tokens = tokens, .cached = match.rows, .common = match.common, .instead = match.instead};
  report.reason = reason_of(report, match.evicted);
  return report;
}

// The end of the prompt, where it parts from one before, and some on the way. Of a conversation also the end
// of its first message, which others may begin with, and the beginning of its last one, which may be edited.
void add_points(Sequence& sequence, std::int64_t spacing, const std::vector<std::int32_t>& message_ends) {
  const PromptReport& found = sequence.report;
  std::vector<std::int64_t>& points = sequence.save_at;
  for (std::int64_t at = found.cached / spacing * spacing + spacing; at < found.tokens; at += spacing)
    points.push_back(at);
  points.push_back(found.common / kChunkUnit * kChunkUnit);
  points.push_back(found.tokens / kChunkUnit * kChunkUnit);
  const auto prompt = std::span(sequence.tokens).first(static_cast<std::size_t>(sequence.prompt));
  const auto ends = [&](std::int32_t id) {
    return std::find(message_ends.begin(), message_ends.end(), id) != message_ends.end();
  };
  const auto first = std::find_if(prompt.begin(), prompt.end(), ends);
  const auto last = std::find_if(prompt.rbegin(), prompt.rend(), ends);
  if (first != prompt.end()) {
    points.push_back((first - prompt.begin() + 1) / kChunkUnit * kChunkUnit);
    points.push_back((prompt.rend() - last) / kChunkUnit * kChunkUnit);
  }
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  std::erase_if(points, [&](std::int64_t at) { return at <= found.cached; });
}

}  // namespace

void Places::recall(Sequence& sequence) {
  if (!tree_) return;
  if (disk_)
    for (const DiskStore::Found& found : disk_->found()) tree_->attach(found.salt, found.ids, found.file);
  const PrefixTree::Match match = tree_->find(sequence.salt, sequence.tokens, sequence.prompt - 1);
  if (sequence.past == 0 || match.rows > sequence.past) sequence.report = report(match, sequence.prompt);
  if (states_) add_points(sequence, spacing_, message_ends_);
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
    tree_->insert(sequence.salt, prompt, rows, pass().pool().pages(slot), state);
    if (disk_) store(sequence, rows, state);
  }
  if (!sequence.reading()) tree_->note(sequence.salt, prompt);
}

// Has written what files lack of these rows and the state behind them.
void Places::store(const Sequence& sequence, std::int64_t rows, const SavedState& state) {
  const auto prompt = std::span(sequence.tokens).first(static_cast<std::size_t>(rows));
  const PrefixTree::Stored stored = tree_->stored(sequence.salt, prompt, rows);
  DiskStore::Content content{.salt = sequence.salt, .ids = {prompt.begin(), prompt.end()}};
  const auto write = [&](FileKind kind, std::int64_t begin, std::int64_t gain, SavedState bytes) {
    content.kind = kind;
    content.begin = begin;
    content.gain = static_cast<std::uint64_t>(gain);
    content.bytes = std::move(bytes);
    if (const FilePtr file = disk_->write(content)) tree_->attach(sequence.salt, prompt, file);
  };
  if (stored.rows < rows)
    write(FileKind::rows, stored.rows, rows - stored.rows,
          std::make_shared<const std::vector<std::byte>>(executor_.run(
              [&] { return pass().pool().save_blocks(sequence.slot->number(), stored.rows, rows); })));
  if (states_ && !stored.state) write(FileKind::state, rows, rows - stored.state_before, state);
}

void Places::fetch(Sequence& sequence, const std::function<double(std::int64_t tokens)>& compute_seconds) {
  if (!disk_) return;
  PrefixTree::StoredMatch match =
      tree_->find_stored(sequence.salt, sequence.tokens, sequence.past, sequence.prompt - 1);
  if (match.rows == 0) return;
  std::uint64_t bytes = 0;
  for (const DiskStore::Piece& piece : match.pieces) bytes += disk_->bytes_of(piece);
  const double computed = compute_seconds(match.rows - sequence.past);
  if (computed > 0 && disk_->seconds(bytes) > computed) return;
  disk_->use(match.files);
  // Pages that are there are its own from now on, whatever goes meanwhile.
  if (match.paged > 0) executor_.run([&] { pass().pool().adopt(sequence.slot->number(), match.pages); });
  sequence.fetch =
      Sequence::Fetch{disk_->read(std::move(match.pieces)), match.paged, match.rows, match.state};
}

void Places::take_fetched(Sequence& sequence) {
  const Sequence::Fetch fetch = *std::exchange(sequence.fetch, {});
  if (fetch.reading->failed) return disk_->settle();
  std::vector<SavedState> parts = fetch.reading->parts;
  SavedState state = fetch.state;
  if (states_ && state == nullptr) {
    state = parts.back();
    parts.pop_back();
  }
  state::StatePool& pool = pass().pool();
  const std::int64_t slot = sequence.slot->number();
  if (!make_free(pool.missing_pages(slot, fetch.paged, fetch.rows - fetch.paged))) return;
  executor_.run([&] {
    std::int64_t begin = fetch.paged;
    for (const SavedState& part : parts) {
      const auto rows = static_cast<std::int64_t>(part->size() / pool.block_bytes()) * kChunkUnit;
      pool.load_blocks(slot, begin, begin + rows, *part);
      begin += rows;
    }
    if (states_) pool.load(slot, fetch.rows, false, *state);
  });
  sequence.report.cached = fetch.rows;
  sequence.report.from_disk = fetch.rows - std::exchange(sequence.past, fetch.rows);
  sequence.report.reason = reason_of(sequence.report, false);
  std::erase_if(sequence.save_at, [&](std::int64_t at) { return at <= fetch.rows; });
  tree_->insert(sequence.salt, sequence.tokens, fetch.rows, pool.pages(slot), std::move(state));
}

void Places::forget_all() {
  if (tree_) tree_->clear();
  if (disk_) disk_->clear();
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
  sequence.fetch.reset();
  close(sequence);
}

}  // namespace sluice::scheduler
