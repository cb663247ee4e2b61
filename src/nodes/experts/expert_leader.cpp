#include "nodes/experts/expert_leader.h"

#include <cstring>

#include "base/error.h"
#include "base/integer_cast.h"
#include "engine/placement/streaming.h"
#include "nodes/experts/expert_question.h"

namespace sluice::nodes::experts {

namespace {

// One node's part of a request: each needed row once, and the choices that refer to the rows.
class Asked {
 public:
  Asked(const layers::moe::RemoteExperts::Question& question, std::size_t width)
      : question_(question), width_(width) {}

  bool empty() const { return results_.empty(); }
  std::size_t answer_bytes() const { return results_.size() * width_; }

  void guess(std::int32_t expert) { guessed_.push_back(expert); }
  void add(std::int64_t token, std::int64_t place, std::int64_t expert) {
    if (tokens_.empty() || tokens_.back() != token) {
      const auto* row = static_cast<const std::byte*>(question_.h.data) + to_size(token) * width_;
      rows_.insert(rows_.end(), row, row + width_);
      tokens_.push_back(token);
    }
    choices_.push_back({to_int(expert), to_int(tokens_.size()) - 1, to_int(results_.size())});
    results_.push_back(to_int(token * question_.chosen.dim(1) + place));
  }
  Message message() const {
    Writer writer;
    writer.put(ExpertCommand::compute);
    writer.put(question_.layer);
    writer.put(question_.phase);
    writer.put(question_.h.dtype);
    writer.put_all(std::span<const layers::moe::Choice>(choices_));
    writer.put_all(std::span<const std::byte>(rows_));
    writer.put_all(std::span<const std::int32_t>(guessed_));
    return writer.take();
  }
  const std::vector<std::int32_t>& results() const { return results_; }

 private:
  const layers::moe::RemoteExperts::Question& question_;
  std::size_t width_;
  std::vector<std::int64_t> tokens_;
  std::vector<layers::moe::Choice> choices_;
  std::vector<std::byte> rows_;
  std::vector<std::int32_t> results_;
  std::vector<std::int32_t> guessed_;
};

std::size_t row_bytes(const ops::View& out) {
  return to_size(out.dim(2)) * size_bytes(out.dtype);
}

}  // namespace

ExpertLeader::ExpertLeader(std::shared_ptr<Cluster> cluster, std::vector<std::int64_t> first_experts)
    : cluster_(std::move(cluster)), first_(std::move(first_experts)) {}

ExpertLeader::~ExpertLeader() {
  try {
    for (int node = 1; node <= others(); ++node) {
      Writer writer;
      writer.put(ExpertCommand::quit);
      cluster_->send(rank(node), Channel::commands, writer.take());
    }
  } catch (const std::exception&) {  // no node is left to dismiss
  }
}

void ExpertLeader::connect(engine::Core& core) {
  bool streamed = core.streamed.cache != nullptr;
  for (int node = 1; node <= others(); ++node) {
    const Message ready = cluster_->receive(rank(node), Channel::replies);
    streamed |= Reader(ready).get<bool>();
  }
  if (!core.backend->traits().host_memory) host_.emplace(*core.backend, *core.streamed.cpu);
  int number = 0;
  for (layers::DecoderLayer& layer : core.model.decoder.layers)
    if (auto* moe = std::get_if<layers::Moe>(&layer.mlp))
      moe->experts = layers::moe::SpreadExperts{.others = this,
                                                .own = first_[1],
                                                .layer = number++,
                                                .cache = core.streamed.cache.get(),
                                                .host = host_ ? &*host_ : nullptr};
  if (streamed) engine::placement::set_foresight(core.model.decoder);
}

void ExpertLeader::request(const Question& question) {
  // After an abandoned pass its answers still arrive: discard them.
  for (const Pending& old : std::exchange(pending_, {})) cluster_->receive(old.rank, Channel::rows);
  out_ = question.out;
  for (int node = 1; node <= others(); ++node) request(node, question);
}

// Sent as one message unless the answer would be too large.
void ExpertLeader::request(int node, const Question& question) {
  constexpr std::size_t kLargestAnswer = std::size_t{64} << 20;
  const std::int64_t first = first_[to_size(node)];
  const std::int64_t end = first_[to_size(node) + 1];
  const std::size_t width = row_bytes(question.out);
  const auto* chosen = static_cast<const std::int32_t*>(question.chosen.data);
  const std::int64_t places = question.chosen.dim(1);
  for (std::int64_t token = 0; token < question.h.dim(0);) {
    Asked asked(question, width);
    for (; token < question.h.dim(0) && asked.answer_bytes() < kLargestAnswer; ++token)
      for (std::int64_t place = 0; place < places; ++place)
        if (const std::int64_t expert = chosen[token * places + place]; expert >= first && expert < end)
          asked.add(token, place, expert - first);
    if (asked.empty()) continue;
    if (question.guessed.present())
      for (const layers::moe::Choice& choice : layers::moe::choices_of(question.guessed))
        if (choice.expert >= first && choice.expert < end) asked.guess(to_int(choice.expert - first));
    cluster_->send(rank(node), Channel::commands, asked.message());
    pending_.push_back({rank(node), asked.results()});
  }
}

void ExpertLeader::await() {
  const std::vector<Pending> all = std::exchange(pending_, {});
  const std::size_t width = row_bytes(out_);
  for (const Pending& pending : all) {
    const Message answer = cluster_->receive(pending.rank, Channel::rows);
    if (answer.size() != pending.results.size() * width)
      fail(ErrorKind::internal, "{} answered {} bytes instead of {}", cluster_->name(pending.rank),
           answer.size(), pending.results.size() * width);
    for (std::size_t i = 0; i < pending.results.size(); ++i)
      std::memcpy(static_cast<std::byte*>(out_.data) + to_size(pending.results[i]) * width,
                  answer.data() + i * width, width);
  }
}

}  // namespace sluice::nodes::experts
