#include "experts/device_tier.h"

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/integer_cast.h"

namespace sluice::experts {

namespace {

constexpr std::size_t kTensorAlignment = 256;

std::size_t room_for(const ops::ConstView& tensor) {
  return (bytes_of(tensor).size() + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

std::size_t room_for(const Expert& expert) {
  std::size_t bytes = 0;
  for_each_tensor(expert, [&](const ops::ConstView& tensor) { bytes += room_for(tensor); });
  return bytes;
}

// An expert of the same shape whose tensors are packed from `data` on.
Expert expert_at(Expert like, const std::byte* data) {
  for_each_tensor(like, [&](ops::ConstView& tensor) {
    tensor = {data, tensor.dtype, tensor.shape};
    data += room_for(tensor);
  });
  return like;
}

ExpertSet experts_at(const Expert& like, std::int64_t count, const void* data) {
  ExpertSet set;
  for (std::int64_t i = 0; i < count; ++i)
    set.add(expert_at(like, static_cast<const std::byte*>(data) + to_size(i) * room_for(like)));
  return set;
}

std::vector<std::int32_t> distinct(const std::int32_t* experts, std::size_t count, std::size_t all) {
  std::vector<std::int32_t> sorted(experts, experts + count);
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  if (sorted.front() < 0 || sorted.back() >= to_int(all))
    fail(ErrorKind::internal, "a router of {} experts chose {} to {}", all, sorted.front(), sorted.back());
  return sorted;
}

}  // namespace

Miss parse_miss(std::string_view name) {
  if (name == "bus") return Miss::bus;
  if (name == "cpu") return Miss::cpu;
  if (name == "auto") return Miss::automatic;
  fail(ErrorKind::input, "'miss' is '{}', allowed is bus, cpu or auto", name);
}

void ExpertSet::add(const Expert& expert) {
  gate_proj.push_back(expert.gate_proj);
  up_proj.push_back(expert.up_proj);
  down_proj.push_back(expert.down_proj);
}

std::uint64_t DeviceTier::bytes(const Store& store, std::int64_t slots) {
  std::uint64_t sum = 0;
  std::uint64_t largest = 0;
  for (int l = 0; l < store.layers(); ++l) {
    const std::int64_t experts = store.layer(l).experts();
    const std::uint64_t one = room_for(store.layer(l)[0]);
    sum += one * std::min(slots, experts);
    largest = std::max(largest, one * experts);
  }
  return sum + largest;
}

DeviceTier::DeviceTier(ops::Backend& backend, Cache& host, Options options)
    : backend_(backend), host_(host), options_(std::move(options)) {
  const Store& store = host_.store();
  memory_ = backend_.allocate(bytes(store, options_.slots));
  const auto* const first = static_cast<const std::byte*>(memory_.data());
  const std::byte* const second = first + bytes(store, 0);
  two_places_ = host_keeps_all() && memory_.bytes() >= 2 * bytes(store, 0);
  const std::byte* next = second;
  std::int64_t hidden = 0;
  for (int l = 0; l < store.layers(); ++l) {
    const Expert like = store.layer(l)[0];
    const std::int64_t experts = store.layer(l).experts();
    const std::int64_t slots = std::min(options_.slots, experts);
    Layer& layer = layers_.emplace_back();
    layer.slots = experts_at(like, slots, next);
    layer.lends = two_places_ && next < second + bytes(store, 0);
    next += room_for(like) * to_size(slots);
    layer.all = experts_at(like, experts, two_places_ && l % 2 == 1 ? second : first);
    if (const std::optional<Expert>& shared = options_.shared[l]) {
      layer.slots.add(*shared);
      layer.all.add(*shared);
    }
    layer.slot_of.assign(to_size(experts), -1);
    layer.expert_in.assign(to_size(slots), -1);
    layer.mark.assign(to_size(slots), 0);
    layer.policy = options_.policy(l);
    usage_.uses.emplace_back(to_size(experts));
    hidden = std::max(hidden, like.gate_proj.shape()[1]);
  }
  const auto ids = to_size(options_.tokens * (options_.chosen + 1)) * sizeof(std::int32_t);
  ops::Meeting::Room room{ids, ids, ids, 0};
  if (options_.miss != Miss::bus) {
    // For passes that use the slots: one row of inputs per token, one row of results per choice.
    const std::size_t row = to_size(hidden) * size_bytes(options_.activations);
    room.shown += to_size(options_.slots / options_.chosen) * row;
    room.rows = to_size(options_.slots) * row;
    host_experts_ = std::make_unique<HostExperts>(*options_.cpu, options_.activations);
  }
  meeting_ = backend_.make_meeting(room);
}

DeviceTier::~DeviceTier() = default;

// If so, its experts never move.
bool DeviceTier::host_keeps_all() const {
  return host_.slots() >= host_.store().layer(0).experts();
}

const ExpertSet& DeviceTier::experts(int layer, std::int64_t tokens) const {
  const Layer& place = layers_[layer];
  return uses_slots(tokens) ? place.slots : place.all;
}

// Tensors that are adjacent in both memories are copied together.
void DeviceTier::upload(const Expert& from, const ExpertSet& to, std::int32_t place) {
  const std::size_t i = place;
  const Expert target{to.gate_proj[i], to.up_proj[i], to.down_proj[i]};
  std::vector<const void*> targets;
  for_each_tensor(target, [&](const ops::ConstView& tensor) { targets.push_back(tensor.data); });
  const std::byte* source = nullptr;
  std::byte* destination = nullptr;
  std::size_t bytes = 0;
  std::size_t t = 0;
  for_each_tensor(from, [&](const ops::ConstView& tensor) {
    const std::span<const std::byte> next = bytes_of(tensor);
    auto* const there = static_cast<std::byte*>(const_cast<void*>(targets[t++]));
    const bool follows = source != nullptr && next.data() >= source + bytes &&
                         next.data() - source == there - destination &&
                         next.data() - (source + bytes) < static_cast<std::ptrdiff_t>(kTensorAlignment);
    if (!follows) {
      if (bytes > 0) meeting_->upload(destination, source, bytes);
      source = next.data();
      destination = there;
    }
    bytes = to_size(next.data() - source) + next.size();
  });
  meeting_->upload(destination, source, bytes);
  usage_.bytes_read += room_for(from);
}

// An empty slot, or the policy victim's, for a wanted expert.
std::int32_t DeviceTier::fill_slot(Layer& layer, const Cache::Resident& resident,
                                   std::span<const std::int32_t> wanted) {
  std::vector<std::int32_t> candidates;
  std::int32_t slot = -1;
  for (std::size_t s = 0; s < layer.expert_in.size() && slot < 0; ++s) {
    const std::int32_t expert = layer.expert_in[s];
    if (expert < 0)
      slot = to_int(s);
    else if (!std::binary_search(wanted.begin(), wanted.end(), expert))
      candidates.push_back(expert);
  }
  if (slot < 0) slot = std::exchange(layer.slot_of[layer.policy->victim(candidates)], -1);
  layer.expert_in[slot] = -1;
  upload(resident.weights, layer.slots, slot);
  layer.expert_in[slot] = resident.expert;
  layer.slot_of[resident.expert] = slot;
  return slot;
}

// Whether an expert that the host computes deserves a slot for later passes.
bool DeviceTier::admits(Layer& layer, std::int32_t expert, std::span<const std::int32_t> wanted) {
  std::vector<std::int32_t> candidates{expert};
  for (const std::int32_t e : layer.expert_in) {
    if (e < 0) return true;
    if (!std::binary_search(wanted.begin(), wanted.end(), e)) candidates.push_back(e);
  }
  return candidates.size() > 1 && layer.policy->victim(candidates) != expert;
}

// How many of the missing experts the host computes.
std::size_t DeviceTier::host_share(std::size_t missing, std::size_t bytes) const {
  if (options_.miss == Miss::bus) return 0;
  if (options_.miss == Miss::cpu) return missing;
  constexpr double kMeeting = 15e-6;  // to copy results to the device, whatever their number
  const double bus = to_double(bytes) / options_.bus_bytes_per_second;
  const double host = host_experts_->seconds(bytes);
  std::size_t best = 0;
  double least = to_double(missing) * bus;
  for (std::size_t share = 1; share <= missing; ++share) {
    const double both = std::max(to_double(missing - share) * bus, kMeeting + to_double(share) * host);
    if (both < least) least = both, best = share;
  }
  return best;
}

// Experts that were fetched ahead and are wanted still count as misses, because they had to be fetched.
void DeviceTier::count(Layer& layer, std::span<const std::int32_t> wanted, std::size_t missing) {
  const std::size_t foreseen = std::count_if(
      layer.ahead.begin(), layer.ahead.end(),
      [&](std::int32_t expert) { return std::binary_search(wanted.begin(), wanted.end(), expert); });
  usage_.hits += wanted.size() - missing - foreseen;
  usage_.misses += missing + foreseen;
  usage_.foreseen += foreseen;
  usage_.unused += layer.ahead.size() - foreseen;
  if (!layer.ahead.empty()) guesses_.learn(foreseen, layer.ahead.size() - foreseen);
  layer.ahead.clear();
}

void DeviceTier::fetch_to_slots(int number, std::span<const std::int32_t> wanted) {
  Layer& layer = layers_[number];
  std::vector<std::uint32_t>& uses = usage_.uses[number];
  layer.policy->use(wanted);
  std::vector<std::int32_t> missing;
  for (const std::int32_t e : wanted) {
    ++uses[e];
    if (layer.slot_of[e] < 0) missing.push_back(e);
  }
  count(layer, wanted, missing.size());
  if (missing.empty()) return;
  const bool whole = host_keeps_all();
  if (!whole) meeting_->finish_uploads();
  const std::size_t share = host_share(missing.size(), room_for(host_.store().layer(number)[0]));
  // The host computes those used least: the device is likelier to need the others again.
  std::sort(missing.begin(), missing.end(),
            [&](std::int32_t a, std::int32_t b) { return uses[a] < uses[b]; });
  const std::vector<std::int32_t> host(missing.begin(), missing.begin() + share);
  std::vector<Cache::Resident> now;
  std::vector<std::int32_t> filled;
  Cache::Pass pass(host_, number, missing);
  std::size_t left = missing.size();
  for (auto residents = pass.next(); !residents.empty(); residents = pass.next()) {
    for (const Cache::Resident& resident : residents) {
      const bool computed = std::find(host.begin(), host.end(), resident.expert) != host.end();
      if (computed) (whole ? later_ : now).push_back(resident);
      if (computed && !(options_.miss == Miss::cpu && admits(layer, resident.expert, wanted))) continue;
      filled.push_back(fill_slot(layer, resident, wanted));
    }
    const std::uint32_t mark = filled.empty() ? 0 : meeting_->mark();
    for (const std::int32_t slot : filled) layer.mark[slot] = mark;
    compute(now);
    filled.clear();
    now.clear();
    left -= residents.size();
    if (left > 0) meeting_->finish_uploads();  // the cache may overwrite what it returned
  }
}

// The device still computes the previous layer, so it reads neither these slots nor this layer's place.
void DeviceTier::fetch_ahead(int number, std::span<const std::int32_t> guessed, bool slots) {
  if (guessed.empty()) return;
  Layer& layer = layers_[number];
  if (!slots) {
    fetch_all(number, guessed);
    layer.ahead.assign(guessed.begin(), guessed.end());
    return;
  }
  std::vector<std::int32_t> filled;
  for (const std::int32_t expert : guessed) {
    if (layer.slot_of[expert] >= 0) continue;
    const std::optional<Cache::Resident> resident = host_.find(number, expert);
    if (!resident) continue;
    filled.push_back(fill_slot(layer, *resident, guessed));
    layer.ahead.push_back(expert);
  }
  if (filled.empty()) return;
  const std::uint32_t mark = meeting_->mark();
  for (const std::int32_t slot : filled) layer.mark[slot] = mark;
}

void DeviceTier::lend_slots() {
  for (Layer& layer : layers_) {
    if (!layer.lends) return;
    std::fill(layer.slot_of.begin(), layer.slot_of.end(), -1);
    std::fill(layer.expert_in.begin(), layer.expert_in.end(), -1);
  }
}

void DeviceTier::fetch_all(int number, std::span<const std::int32_t> wanted) {
  Layer& layer = layers_[number];
  lend_slots();
  std::vector<std::int32_t> missing;
  std::set_difference(wanted.begin(), wanted.end(), layer.ahead.begin(), layer.ahead.end(),
                      std::back_inserter(missing));
  layer.ahead.clear();
  Cache::Pass pass(host_, number, missing);
  std::size_t left = missing.size();
  for (auto residents = pass.next(); !residents.empty(); residents = pass.next()) {
    for (const Cache::Resident& resident : residents) upload(resident.weights, layer.all, resident.expert);
    left -= residents.size();
    if (left > 0) meeting_->finish_uploads();
  }
}

// Computes the results of the choices that name these experts.
void DeviceTier::compute(std::span<const Cache::Resident> residents) {
  if (residents.empty()) return;
  const std::size_t k = options_.chosen;
  const std::size_t hidden = residents[0].weights.gate_proj.shape()[1];
  const std::size_t row = hidden * size_bytes(options_.activations);
  for (std::size_t token = 0; token < chosen_.size() / k; ++token) {
    std::vector<Expert> experts;
    std::byte* out = meeting_->rows() + given_.size() * row;
    for (std::size_t j = 0; j < k; ++j) {
      const auto found = std::find_if(
          residents.begin(), residents.end(),
          [&](const Cache::Resident& resident) { return resident.expert == chosen_[token * k + j]; });
      if (found == residents.end()) continue;
      experts.push_back(found->weights);
      given_.push_back(to_int(token) * to_int(width_) + to_int(j));
    }
    if (!experts.empty()) host_experts_->compute(inputs_ + token * row, experts, out);
  }
}

// If this fails, the device must not keep waiting.
template <class F>
void DeviceTier::meet(F&& work) {
  try {
    work();
  } catch (...) {
    meeting_->abandon();
    for (Layer& layer : layers_) {
      std::fill(layer.mark.begin(), layer.mark.end(), 0u);
      layer.ahead.clear();
    }
    backend_.synchronize();  // throws the device's own error if that came first
    throw;
  }
}

void DeviceTier::publish_and_await(const ops::View& chosen, const ops::View& inputs,
                                   const ops::View& places) {
  meeting_->publish_and_await(chosen, shares_work(chosen.dim(0)) ? inputs : ops::View{}, places);
}

void DeviceTier::publish_choices(const ops::View& chosen, const ops::View& inputs) {
  meeting_->publish_choices(chosen, shares_work(chosen.dim(0)) ? inputs : ops::View{});
}

void DeviceTier::await_slots(const ops::View& guessed, const ops::View& places) {
  meeting_->await_slots(guessed, places);
}

void DeviceTier::fetch_missing(int layer, std::int64_t tokens, bool guessed) {
  meet([&] {
    const std::byte* shown = meeting_->wait();
    const auto start = Clock::now();
    const auto* ids = reinterpret_cast<const std::int32_t*>(shown);
    chosen_.assign(ids, ids + tokens * options_.chosen);
    inputs_ = shown + chosen_.size() * sizeof(std::int32_t);
    width_ = places(layer);
    later_.clear();
    given_.clear();
    const auto wanted = distinct(ids, chosen_.size(), experts_of(layer));
    uses_slots(tokens) ? fetch_to_slots(layer, wanted) : fetch_all(layer, wanted);
    std::vector<std::int32_t> next;
    if (guessed && (!uses_slots(tokens) || guesses_.trusted()))
      next = distinct(reinterpret_cast<const std::int32_t*>(meeting_->guess()), chosen_.size(),
                      experts_of(layer + 1));
    send_slots(layer, tokens);
    usage_.wait_seconds += seconds_since(start);
    fetch_ahead(layer + 1, next, uses_slots(tokens));
  });
}

// Sends the slot of every choice. Choices that the host computes get an arbitrary one: their result is
// replaced.
void DeviceTier::send_slots(int number, std::int64_t tokens) {
  const Layer& layer = layers_[number];
  const bool slots = uses_slots(tokens);
  const std::size_t k = options_.chosen;
  const std::size_t width = width_;
  const auto shared = to_int(slots ? layer.expert_in.size() : layer.slot_of.size());
  std::vector<std::int32_t> places(to_size(tokens) * width, shared);
  std::uint32_t mark = slots ? 0 : meeting_->mark();
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    std::int32_t place = chosen_[i];
    if (slots) {
      place = std::max(layer.slot_of[place], 0);
      const auto row = to_int(i / k * width + i % k);
      const bool computed = std::find_if(later_.begin(), later_.end(),
                                         [&](const Cache::Resident& resident) {
                                           return resident.expert == chosen_[i];
                                         }) != later_.end() ||
                            std::find(given_.begin(), given_.end(), row) != given_.end();
      if (!computed) mark = std::max(mark, layer.mark[place]);
    }
    places[i / k * width + i % k] = place;
  }
  meeting_->send_slots(places, mark);
}

void DeviceTier::await_host_rows(const ops::View& out) {
  meeting_->await_rows(out.reshaped({out.dim(0) * out.dim(1), out.dim(2)}));
}

void DeviceTier::send_host_rows() {
  meet([&] {
    compute(later_);
    meeting_->wait();
    meeting_->send_rows(given_);
  });
}

}  // namespace sluice::experts
