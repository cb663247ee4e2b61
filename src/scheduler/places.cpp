#include "scheduler/places.h"

#include <algorithm>
#include <utility>

#include "base/integer_cast.h"
#include "scheduler/prefix/identity.h"

namespace sluice::scheduler {

namespace {

constexpr std::size_t kInTransit = std::size_t{256} << 20;  // bytes in transit between files and pages
constexpr std::size_t kAhead = std::size_t{256} << 20;      // room for some states of a large model

}  // namespace

class Places::Pages final : public prefix::PageOwner {
 public:
  Pages(engine::Executor& executor, state::StatePool& pool, prefix::HostMemory& memory)
      : executor_(executor), pool_(pool), memory_(memory) {}
  std::int64_t rows() const override { return state::kPageRows; }
  void hold(std::int32_t page) override { pool_.hold(page); }
  void drop(std::int32_t page) override { pool_.drop(page); }
  bool shared(std::int32_t page) const override { return pool_.shared(page); }
  prefix::SavedState save_block(std::int32_t page, std::int64_t block) override {
    return copy(pool_.block_bytes(), [&](auto to) { pool_.save_page_block(page, block, to); });
  }
  prefix::SavedState save_snapshot(std::int32_t place) override {
    return copy(pool_.saved_bytes(0, false), [&](auto to) { pool_.save_snapshot(place, to); });
  }

 private:
  template <class F>
  prefix::SavedState copy(std::size_t bytes, F&& f) try {
    return memory_.make(bytes, [&](std::span<std::byte> to) { executor_.run([&] { f(to); }); });
  } catch (const std::bad_alloc&) {
    return {};
  }

  engine::Executor& executor_;
  state::StatePool& pool_;
  prefix::HostMemory& memory_;
};

Places::Places(engine::Core& core, const SchedulerOptions& settled)
    : executor_(*core.executor),
      group_(executor_.reserve({settled.parallel, settled.context, state::pages_for(settled.cache_tokens),
                                settled.cache_snapshots})),
      states_(core.summary.state_bytes > 0),
      message_ends_(core.stop_ids),
      spacing_(settled.state_spacing),
      reuse_decoded_(settled.reuse_decoded),
      memory_claim_(core.backend->traits().host_memory && settled.remember_prompts
                        ? core.budget.claim(settled.cache_memory)
                        : engine::placement::Budget::Claim()),
      memory_([backend = core.backend.get()](std::size_t bytes) { return backend->allocate_pinned(bytes); },
              {.kept = settled.cache_memory + (settled.cache_folder.empty() ? 0 : kInTransit),
               .ahead = core.backend->traits().host_memory ? 0 : kAhead}),
      owner_(std::make_unique<Pages>(executor_, group_->pass.pool(), memory_)) {
  if (settled.remember_prompts)
    tree_.emplace(*owner_,
                  prefix::PrefixTreeOptions{.states = states_,
                                            .shares = std::max<std::int64_t>(1, settled.cache_keys),
                                            .block_bytes = pass().pool().block_bytes(),
                                            .state_bytes = states_ ? pass().pool().saved_bytes(0, false) : 0,
                                            .host_bytes = settled.cache_memory});
  if (tree_ && !settled.cache_folder.empty()) open_disk(core, settled);
}

void Places::open_disk(engine::Core& core, const SchedulerOptions& settled) {
  const state::StatePool& pool = pass().pool();
  const prefix::DiskOptions options{.folder = settled.cache_folder,
                                    .bytes = settled.cache_folder_bytes,
                                    .fingerprint = prefix::identity(core, group_),
                                    .row_bytes = pool.block_bytes(),
                                    .state_bytes = states_ ? pool.saved_bytes(0, false) : 0,
                                    .shares = std::max<std::int64_t>(1, settled.cache_keys),
                                    .log = settled.log};
  disk_.emplace(options, memory_);
}

bool Places::make_free(std::int64_t pages) {
  while (free_pages() < pages)
    if (!tree_ || !tree_->evict_page()) return false;
  return true;
}

bool Places::forget_shared(const Sequence& sequence) {
  const std::vector<std::int32_t>& own = group_->pass.pool().pages(sequence.slot->number());
  const auto next = to_size(sequence.past / state::kPageRows);
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

PromptReport report(const prefix::PrefixTree::Match& match, std::int64_t tokens) {
  PromptReport report{
      .tokens = tokens, .cached = match.rows, .common = match.common, .instead = match.instead};
  report.reason = reason_of(report, match.evicted);
  return report;
}

// The ends of a conversation's messages, ascending, rounded down to multiples of 64.
std::vector<std::int64_t> message_ends_of(const Sequence& sequence, std::span<const std::int32_t> end_ids) {
  std::vector<std::int64_t> ends;
  for (std::int64_t i = 0; i < sequence.prompt; ++i)
    if (std::find(end_ids.begin(), end_ids.end(), sequence.tokens[to_size(i)]) != end_ids.end())
      ends.push_back((i + 1) / kChunkUnit * kChunkUnit);
  return ends;
}

// The end of the message `from_last` before the last one, or of the first message.
std::int64_t end_of(const std::vector<std::int64_t>& ends, std::int64_t from_last) {
  if (ends.empty()) return 0;
  return ends[ends.size() - 1 - to_size(std::clamp<std::int64_t>(from_last, 0, std::ssize(ends) - 1))];
}

std::int64_t last_marked(const Sequence& sequence, std::span<const std::int32_t> end_ids) {
  std::int64_t last = 0;
  if (sequence.request.cache_messages.empty()) return last;
  const std::vector<std::int64_t> ends = message_ends_of(sequence, end_ids);
  for (const std::int64_t wanted : sequence.request.cache_messages)
    last = std::max(last, end_of(ends, wanted));
  return last;
}

// The most tokens with which a template opens the answer: a continuation may open it differently, without
// thinking for instance, or not at all.
constexpr std::int64_t kOpening = 16;

// Adds the end of the prompt, the point where it diverges from an earlier one, and some in between. For
// conversations also the end of the first message, with which others may begin, and the beginning of the last
// one, which may be edited.
void add_points(Sequence& sequence, std::int64_t spacing, const std::vector<std::int32_t>& message_ends) {
  const PromptReport& found = sequence.report;
  std::vector<std::int64_t>& points = sequence.save_at;
  for (std::int64_t at = found.cached / spacing * spacing + spacing; at < found.tokens; at += spacing)
    points.push_back(at);
  points.push_back(found.common / kChunkUnit * kChunkUnit);
  points.push_back(found.tokens / kChunkUnit * kChunkUnit);
  points.push_back((found.tokens - kOpening) / kChunkUnit * kChunkUnit);
  const std::vector<std::int64_t> ends = message_ends_of(sequence, message_ends);
  if (!ends.empty()) {
    points.push_back(ends.front());
    points.push_back(ends.back());
  }
  for (const std::int64_t wanted : sequence.request.cache_messages) points.push_back(end_of(ends, wanted));
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  std::erase_if(points, [&](std::int64_t at) { return at <= found.cached; });
}

}  // namespace

void Places::recall(Sequence& sequence) {
  if (!tree_) return;
  if (disk_)
    for (const prefix::DiskStore::Found& found : disk_->found())
      tree_->attach(found.salt, found.ids, found.file);
  const std::int64_t most = sequence.scored() ? 0 : sequence.prompt - 1;
  const prefix::PrefixTree::Match match = tree_->find(sequence.salt, sequence.tokens, most);
  if (sequence.past == 0 || match.rows > sequence.past) {
    sequence.report = report(match, sequence.prompt);
    if (sequence.scored()) sequence.report.reason = PromptReport::Reason::off;
    sequence.report.marked = last_marked(sequence, message_ends_);
    sequence.report.other_options =
        disk_ && match.common < kChunkUnit && disk_->others_begin(sequence.salt, sequence.tokens);
  }
  if (states_) add_points(sequence, spacing_, message_ends_);
  if (match.rows <= sequence.past) return;
  executor_.run([&] {
    pass().pool().adopt(sequence.slot->number(), match.pages);
    load_state(sequence, match.rows, match.state);
  });
  go_on(sequence, match.rows, match.exact);
}

void Places::load_state(const Sequence& sequence, std::int64_t rows, const prefix::KeptState& state) {
  if (!states_) return;
  if (state.place != nullptr)
    pass().pool().copy_from_snapshot(sequence.slot->number(), *state.place);
  else
    pass().pool().load(sequence.slot->number(), rows, false, *state.bytes);
}

void Places::go_on(Sequence& sequence, std::int64_t rows, std::int64_t exact) {
  sequence.past = rows;
  if (exact < rows) sequence.exact = exact;
  sequence.report.decoded = rows - exact;
  std::erase_if(sequence.save_at, [&](std::int64_t at) { return at <= rows; });
}

std::vector<prefix::SnapshotPlace> Places::take_snapshots(std::int64_t count) {
  state::StatePool& pool = pass().pool();
  while (pool.free_snapshots() < count && tree_->evict_snapshot()) {
  }
  std::vector<prefix::SnapshotPlace> places;
  for (count = std::min(count, pool.free_snapshots()); count > 0; --count) {
    const auto give_back = [&pool](const std::int32_t* place) {
      pool.release_snapshot(*place);
      delete place;
    };
    places.emplace_back(prefix::SnapshotPlace(new std::int32_t(pool.take_snapshot()), give_back));
  }
  std::sort(places.begin(), places.end(),
            [](const prefix::SnapshotPlace& a, const prefix::SnapshotPlace& b) { return *a < *b; });
  return places;
}

void Places::remember(const Sequence& sequence, const StateCopy& copy) {
  keep(sequence, copy.rows, {.place = copy.place});
}

void Places::remember(const Sequence& sequence) {
  if (!tree_) return;
  const std::int64_t rows = std::min(sequence.past, sequence.prompt) / kChunkUnit * kChunkUnit;
  if (rows > 0 && (!states_ || rows == sequence.past)) {
    keep(sequence, rows, copy_state(sequence, rows));
  }
  if (!sequence.reading())
    tree_->note(sequence.salt, std::span(sequence.tokens).first(to_size(sequence.prompt)));
}

prefix::KeptState Places::copy_state(const Sequence& sequence, std::int64_t rows) {
  prefix::KeptState state;
  if (!states_) return state;
  const std::int64_t slot = sequence.slot->number();
  const std::vector<prefix::SnapshotPlace> places = take_snapshots(1);
  if (places.empty()) {
    state.bytes = save_state(slot, rows);
  } else {
    state.place = places[0];
    executor_.run([&] { pass().pool().copy_to_snapshot(slot, *state.place); });
  }
  return state;
}

void Places::follow_answer(Sequence& sequence) try {
  if (!reuse_decoded_ || !tree_ || sequence.past % kChunkUnit != 0 || sequence.past <= sequence.prompt)
    return;
  sequence.answered = {};  // first, because its place may be the one that is reused
  sequence.answered = {sequence.past, copy_state(sequence, sequence.past)};
} catch (const std::bad_alloc&) {  // then it is not cached
}

void Places::remember_answer(const Sequence& sequence) {
  const auto& [rows, state] = sequence.answered;
  if (rows == 0) return;
  tree_->insert(sequence.salt, std::span(sequence.tokens).first(to_size(rows)), rows,
                pass().pool().pages(sequence.slot->number()), state,
                {.exact = sequence.exact, .key = sequence.request.cache_key});
}

std::vector<RememberedPrefix> Places::remembered(const prefix::Salt& salt, std::size_t most) const {
  return tree_ ? tree_->describe(salt, most) : std::vector<RememberedPrefix>();
}

// If other nodes hold layers of the model, this includes their states.
prefix::SavedState Places::save_state(std::int64_t slot, std::int64_t rows) {
  const std::vector<std::byte> saved = executor_.run([&] { return pass().pool().save(slot, rows, false); });
  return memory_.make(saved.size(),
                      [&](std::span<std::byte> to) { std::copy(saved.begin(), saved.end(), to.begin()); });
}

void Places::keep(const Sequence& sequence, std::int64_t rows, prefix::KeptState state) {
  const auto prompt = std::span(sequence.tokens).first(to_size(sequence.prompt));
  if (disk_ && rows <= sequence.exact && state.place != nullptr &&
      !tree_->stored(sequence.salt, prompt, rows).state)
    state.bytes = owner_->save_snapshot(*state.place);
  const prefix::SavedState bytes = state.bytes;
  const bool ends = rows == sequence.prompt / kChunkUnit * kChunkUnit;
  tree_->insert(sequence.salt, prompt, rows, pass().pool().pages(sequence.slot->number()), std::move(state),
                {.exact = sequence.exact, .key = ends ? sequence.request.cache_key : std::string_view()});
  if (disk_ && rows <= sequence.exact) store(sequence, rows, bytes);
}

// Writes those of these rows, and the state after them, that no file has.
void Places::store(const Sequence& sequence, std::int64_t rows, const prefix::SavedState& state) {
  const auto prompt = std::span(sequence.tokens).first(to_size(rows));
  const prefix::PrefixTree::Stored stored = tree_->stored(sequence.salt, prompt, rows);
  prefix::DiskStore::Content content{.salt = sequence.salt, .ids = {prompt.begin(), prompt.end()}};
  const auto write = [&](prefix::FileKind kind, std::int64_t begin, std::int64_t gain,
                         prefix::SavedState bytes) {
    content.kind = kind;
    content.begin = begin;
    content.gain = gain;
    content.bytes = std::move(bytes);
    if (const prefix::FilePtr file = disk_->write(content)) tree_->attach(sequence.salt, prompt, file);
  };
  if (stored.rows < rows) {
    const std::size_t blocks = to_size((rows - stored.rows) / kChunkUnit);
    write(prefix::FileKind::rows, stored.rows, rows - stored.rows,
          memory_.make(blocks * pass().pool().block_bytes(), [&](std::span<std::byte> to) {
            executor_.run([&] { pass().pool().save_blocks(sequence.slot->number(), stored.rows, rows, to); });
          }));
  }
  if (state != nullptr && !stored.state)
    write(prefix::FileKind::state, rows, rows - stored.state_before, state);
}

void Places::fetch(Sequence& sequence, const std::function<double(std::int64_t tokens)>& compute_seconds) {
  if (!tree_) return;
  prefix::PrefixTree::StoredMatch match =
      tree_->find_stored(sequence.salt, sequence.tokens, sequence.past, sequence.prompt - 1);
  // A suspended sequence has rows of its own, which adopting pages would lose.
  if (match.rows == 0 || match.paged < sequence.past) return;
  std::uint64_t to_read = 0;
  if (disk_)
    for (const prefix::DiskStore::Piece& piece : match.pieces) to_read += disk_->bytes_of(piece);
  const double computed = compute_seconds(match.rows - sequence.past);
  if (computed > 0 &&
      (disk_ ? disk_->seconds(to_read) : 0) + seconds_to_load(match.rows - match.paged) > computed)
    return;
  // From now on the pages belong to the sequence too, so eviction does not affect it.
  if (match.paged > 0) executor_.run([&] { pass().pool().adopt(sequence.slot->number(), match.pages); });
  if (match.in_memory()) {
    std::vector<prefix::SavedState> parts;
    for (const prefix::DiskStore::Piece& piece : match.pieces) parts.push_back(piece.bytes);
    const std::int64_t before = sequence.past;
    if (load(sequence, {match.paged, match.rows, match.exact, parts, match.state}))
      sequence.report.from_host = match.rows - before;
    else
      give_up(sequence);
    return;
  }
  disk_->use(match.files);
  sequence.fetch = Sequence::Fetch{disk_->read(std::move(match.pieces)), match.paged, match.rows, match.exact,
                                   match.state};
}

void Places::take_fetched(Sequence& sequence) {
  const Sequence::Fetch fetch = *std::exchange(sequence.fetch, {});
  if (fetch.reading->failed) {
    give_up(sequence);
    return disk_->settle();
  }
  Loaded loaded{fetch.paged, fetch.rows, fetch.exact, fetch.reading->parts, fetch.state};
  if (states_ && !loaded.state.present()) {
    loaded.state.bytes = loaded.parts.back();
    loaded.parts.pop_back();
  }
  const std::int64_t before = sequence.past;
  if (load(sequence, loaded))
    sequence.report.from_disk = fetch.rows - before;
  else
    give_up(sequence);
}

// Frees pages after its past that it took for rows that will not come: nobody else could use them as long as
// the sequence lacks pages to continue.
void Places::give_up(const Sequence& sequence) {
  state::StatePool& pool = pass().pool();
  std::vector<std::int32_t> pages = pool.pages(sequence.slot->number());
  pages.resize(std::min(pages.size(), to_size(state::pages_for(sequence.past))));
  executor_.run([&] { pool.adopt(sequence.slot->number(), pages); });
}

double Places::seconds_to_load(std::int64_t rows) const {
  return loading_.known() ? loading_.seconds(rows) : 0;
}

bool Places::load(Sequence& sequence, const Loaded& from) {
  state::StatePool& pool = pass().pool();
  const std::int64_t slot = sequence.slot->number();
  if (!make_free(pool.missing_pages(slot, from.paged, from.rows - from.paged))) return false;
  const auto start = Clock::now();
  executor_.run([&] {
    std::int64_t begin = from.paged;
    for (const prefix::SavedState& part : from.parts) {
      const auto rows = static_cast<std::int64_t>(part->size() / pool.block_bytes()) * kChunkUnit;
      pool.load_blocks(slot, begin, begin + rows, *part);
      begin += rows;
    }
    load_state(sequence, from.rows, from.state);
    pool.wait();
  });
  loading_.add(from.rows - from.paged, seconds_since(start));
  go_on(sequence, from.rows, from.exact);
  sequence.report.cached = from.rows;
  sequence.report.reason = reason_of(sequence.report, false);
  tree_->insert(sequence.salt, sequence.tokens, from.rows, pool.pages(slot), from.state,
                {.exact = from.exact < from.rows ? from.exact : sequence.prompt});
  return true;
}

void Places::forget_all() {
  if (tree_) tree_->clear();
  if (disk_) disk_->clear();
}

void Places::close(Sequence& sequence) {
  sequence.fetch.reset();
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
