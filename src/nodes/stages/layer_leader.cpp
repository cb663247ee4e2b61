#include "nodes/stages/layer_leader.h"

#include <algorithm>

#include "base/error.h"
#include "nodes/stages/rows.h"

namespace sluice::nodes::stages {

// The slots of one group on all other nodes.
class LayerLeader::RemotePool final : public state::PoolReplica {
 public:
  RemotePool(LayerLeader& leader, int group) : leader_(leader), group_(group) {}
  ~RemotePool() override { leader_.close(group_); }

  int group() const { return group_; }
  // Called for the other nodes in order.
  void add(const SavedSize& size) { sizes_.push_back(size); }

  void open(std::int64_t slot, std::int64_t capacity) override {
    leader_.post(Command::promise, group_, slot, capacity);
    leader_.flush();
    leader_.expect_no_refusal([](Reader&) {});
  }
  void reset(std::int64_t slot) override { leader_.post(Command::reset, group_, slot); }
  void release(std::int64_t slot) override { leader_.post(Command::release, group_, slot); }
  void fork(std::int64_t from, std::int64_t to, std::int64_t rows) override {
    leader_.post(Command::fork, group_, from, to, rows);
  }
  void hold(std::int32_t page) override { leader_.post(Command::hold, group_, page); }
  void drop(std::int32_t page) override { leader_.post(Command::drop, group_, page); }
  void adopt(std::int64_t slot, std::span<const std::int32_t> pages) override {
    leader_.post(Command::adopt, group_, slot, pages);
  }

  void save(std::int64_t slot, std::int64_t rows, bool with_caches, std::vector<std::byte>& saved) override {
    ask(Command::save, slot, rows, with_caches);
    const std::size_t before = saved.size();
    saved.resize(before + saved_bytes(rows, with_caches));
    receive(std::span(saved).subspan(before),
            [&](const SavedSize& size) { return size.bytes(rows, with_caches); });
  }

  void load(std::int64_t slot, std::int64_t rows, bool with_caches,
            std::span<const std::byte> saved) override {
    ask(Command::load, slot, rows, with_caches);
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const std::size_t own = sizes_[i].bytes(rows, with_caches);
      leader_.cluster_->send_bytes(leader_.others_[i], Channel::replies, saved.first(own));
      saved = saved.subspan(own);
    }
  }

  void save_blocks(std::int64_t slot, std::int64_t begin, std::int64_t end, std::size_t behind,
                   std::span<std::byte> to) override {
    ask(Command::save_blocks, slot, begin, end);
    for_each_part(behind, [&](int other, const state::BlockPart& part) {
      std::vector<std::byte> own(part.bytes_in(to.size()));
      leader_.cluster_->receive_bytes(other, Channel::replies, own);
      part.put(own, to);
    });
  }

  void load_blocks(std::int64_t slot, std::int64_t begin, std::int64_t end, std::size_t behind,
                   std::span<const std::byte> saved) override {
    ask(Command::load_blocks, slot, begin, end);
    for_each_part(behind, [&](int other, const state::BlockPart& part) {
      leader_.cluster_->send_bytes(other, Channel::replies, part.take(saved));
    });
  }

  void save_page_block(std::int32_t page, std::int64_t block, std::span<std::byte> to) override {
    ask(Command::save_page_block, page, block);
    receive(to, [](const SavedSize& size) { return size.block(); });
  }

  void copy_to_snapshot(std::int64_t slot, std::int32_t place) override {
    leader_.post(Command::copy_to_snapshot, group_, slot, place);
  }
  void copy_from_snapshot(std::int64_t slot, std::int32_t place) override {
    leader_.post(Command::copy_from_snapshot, group_, slot, place);
  }
  void save_snapshot(std::int32_t place, std::span<std::byte> to) override {
    ask(Command::save_snapshot, place);
    receive(to, [](const SavedSize& size) { return size.state; });
  }

  void wait() override {
    ask(Command::wait);
    for (const int other : leader_.others_) leader_.cluster_->receive(other, Channel::replies);
  }

  std::size_t saved_bytes(std::int64_t rows, bool with_caches) const override {
    std::size_t sum = 0;
    for (const SavedSize& size : sizes_) sum += size.bytes(rows, with_caches);
    return sum;
  }

 private:
  template <class... Values>
  void ask(Command command, const Values&... values) {
    leader_.post(command, group_, values...);
    leader_.flush();
  }
  // Receives the nodes' parts of an answer one after the other; `bytes` gives the size of a node's part from
  // its SavedSize.
  template <class F>
  void receive(std::span<std::byte> to, F&& bytes) {
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const std::size_t own = bytes(sizes_[i]);
      leader_.cluster_->receive_bytes(leader_.others_[i], Channel::replies, to.first(own));
      to = to.subspan(own);
    }
  }
  // f(node, part) for each other node's part of the blocks; `behind` bytes of each block come before.
  template <class F>
  void for_each_part(std::size_t behind, F&& f) {
    std::size_t block = behind;
    for (const SavedSize& size : sizes_) block += size.block();
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      f(leader_.others_[i], state::BlockPart{behind, sizes_[i].block(), block});
      behind += sizes_[i].block();
    }
  }

  LayerLeader& leader_;
  int group_;
  std::vector<SavedSize> sizes_;
};

namespace {

template <class T>
void put(Writer& writer, const T& value) {
  writer.put(value);
}
void put(Writer& writer, const std::span<const std::int32_t>& values) {
  writer.put_all(values);
}

}  // namespace

LayerLeader::LayerLeader(std::shared_ptr<Cluster> cluster, const std::vector<int>& heads)
    : cluster_(std::move(cluster)), others_(heads.begin() + 1, heads.end()) {}

LayerLeader::~LayerLeader() {
  try {
    post(Command::quit);
    flush();
  } catch (const std::exception&) {  // no node is left to dismiss
  }
}

template <class... Values>
void LayerLeader::post(Command command, const Values&... values) {
  const std::lock_guard lock(mutex_);
  commands_.put(command);
  (put(commands_, values), ...);
}

void LayerLeader::flush() {
  const std::lock_guard lock(mutex_);
  const Message message = commands_.take();
  for (const int other : others_) cluster_->send(other, Channel::commands, message);
}

void LayerLeader::close(int group) noexcept try {
  post(Command::close, group);
} catch (const std::exception&) {  // without memory for the message, the others keep theirs for a while
}

void LayerLeader::connect(engine::Core& core) {
  for (const int other : others_) {
    const Message ready = cluster_->receive(other, Channel::replies);
    core.settings.prefill_chunk = std::min(core.settings.prefill_chunk, Reader(ready).get<std::int64_t>());
  }
  core.model.decoder.rows_out = [this, &core](const layers::Pass& pass, const ops::View& x) {
    send_rows(core, pass, x);
  };
  core.model.decoder.rows_back = [this, &core](const layers::Pass& pass, const ops::View& x) {
    receive_rows(core, pass, x);
  };
}

// Every other node answers with an error or nothing, and possibly more, which `more` reads.
template <class F>
void LayerLeader::expect_no_refusal(F&& more) {
  std::string refusal;
  for (const int other : others_) {
    const Message answer = cluster_->receive(other, Channel::replies);
    Reader reader(answer);
    const std::string why = reader.get_text();
    more(reader);
    if (refusal.empty() && !why.empty()) refusal = fmt::format("{}: {}", cluster_->name(other), why);
  }
  if (!refusal.empty()) throw Error(ErrorKind::resource, refusal);
}

std::unique_ptr<state::PoolReplica> LayerLeader::open(const state::Extent& extent, std::int64_t chunk) {
  auto pool = std::make_unique<RemotePool>(*this, groups_++);
  post(Command::open, pool->group(), extent, chunk);
  flush();
  expect_no_refusal([&](Reader& reader) { pool->add(reader.get<SavedSize>()); });
  return pool;
}

std::int64_t LayerLeader::begin(state::PoolReplica* replica, const engine::Batch& batch) {
  // Starts several chunks of a prompt ahead, as many as keep all nodes busy.
  const auto underway = [this] {
    return std::count_if(answers_.begin(), answers_.end(), [](const Answer& answer) { return !answer.came; });
  };
  while (underway() >= stages()) await_answer();
  post(Command::pass, static_cast<RemotePool&>(*replica).group(), batch);
  flush();
  return passes_++;
}

void LayerLeader::await_answer() {
  const auto next =
      std::find_if(answers_.begin(), answers_.end(), [](const Answer& answer) { return !answer.came; });
  next->rows = cluster_->receive(others_.back(), Channel::rows);
  next->came = true;
  if (next->wanted) return;
  if (!next->rows.empty()) fail(ErrorKind::internal, "a node sent rows that were not requested");
  answers_.erase(next);
}

void LayerLeader::send_rows(const engine::Core& core, const layers::Pass& pass, const ops::View& x) {
  cluster_->send(others_.front(), Channel::rows, pack_rows(*core.backend, x));
  answers_.push_back({pass.number, !wanted_rows(pass).empty()});
}

void LayerLeader::receive_rows(const engine::Core& core, const layers::Pass& pass, const ops::View& x) {
  const auto asked = [&] {
    return std::find_if(answers_.begin(), answers_.end(),
                        [&](const Answer& answer) { return answer.pass == pass.number; });
  };
  while (asked() != answers_.end() && !asked()->came) await_answer();
  if (asked() == answers_.end()) fail(ErrorKind::internal, "no rows are expected from pass {}", pass.number);
  const Message rows = std::move(asked()->rows);
  answers_.erase(asked());
  unpack_rows(*core.backend, rows, x, wanted_rows(pass));
}

}  // namespace sluice::nodes::stages
