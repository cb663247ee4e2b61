#include "experts/device_tier.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"

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

// An expert of the same shape whose tensors lie one behind the other from `data` on.
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
    set.add(
        expert_at(like, static_cast<const std::byte*>(data) + static_cast<std::size_t>(i) * room_for(like)));
  return set;
}

}  // namespace

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
    sum += one * static_cast<std::uint64_t>(std::min(slots, experts));
    largest = std::max(largest, one * static_cast<std::uint64_t>(experts));
  }
  return sum + largest;
}

DeviceTier::DeviceTier(ops::Backend& backend, Cache& host, Options options)
    : backend_(backend), host_(host), options_(std::move(options)) {
  const Store& store = host_.store();
  all_ = backend_.allocate(bytes(store, 0));
  for (int l = 0; l < store.layers(); ++l) {
    const Expert like = store.layer(l)[0];
    const std::int64_t experts = store.layer(l).experts();
    const std::int64_t slots = std::min(options_.slots, experts);
    Layer& layer = layers_.emplace_back();
    layer.memory = backend_.allocate(room_for(like) * static_cast<std::size_t>(slots));
    layer.slots = experts_at(like, slots, layer.memory.data());
    layer.all = experts_at(like, experts, all_.data());
    if (const std::optional<Expert>& shared = options_.shared[static_cast<std::size_t>(l)]) {
      layer.slots.add(*shared);
      layer.all.add(*shared);
    }
    layer.slot_of.assign(static_cast<std::size_t>(experts), -1);
    layer.expert_in.assign(static_cast<std::size_t>(slots), -1);
    layer.policy = options_.policy(l);
    usage_.uses.emplace_back(static_cast<std::size_t>(experts));
  }
  const auto ids = static_cast<std::size_t>(options_.tokens * (options_.chosen + 1)) * sizeof(std::int32_t);
  chosen_ = options_.pinned(ids);
  places_ = options_.pinned(ids);
}

const ExpertSet& DeviceTier::experts(int layer, std::int64_t tokens) const {
  const Layer& place = layers_[static_cast<std::size_t>(layer)];
  return uses_slots(tokens) ? place.slots : place.all;
}

// Tensors that are neighbours in both memories travel together.
void DeviceTier::copy(const Expert& from, const ExpertSet& to, std::int32_t place) {
  const auto i = static_cast<std::size_t>(place);
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
      if (bytes > 0) backend_.upload(destination, source, bytes);
      source = next.data();
      destination = there;
    }
    bytes = static_cast<std::size_t>(next.data() - source) + next.size();
  });
  backend_.upload(destination, source, bytes);
  usage_.bytes_read += room_for(from);
}

std::int32_t DeviceTier::free_slot(Layer& layer, std::span<const std::int32_t> wanted) {
  std::vector<std::int32_t> candidates;
  for (std::size_t s = 0; s < layer.expert_in.size(); ++s) {
    const std::int32_t expert = layer.expert_in[s];
    if (expert < 0) return static_cast<std::int32_t>(s);
    if (!std::binary_search(wanted.begin(), wanted.end(), expert)) candidates.push_back(expert);
  }
  const std::int32_t slot =
      std::exchange(layer.slot_of[static_cast<std::size_t>(layer.policy->victim(candidates))], -1);
  layer.expert_in[static_cast<std::size_t>(slot)] = -1;
  return slot;
}

void DeviceTier::bring_to_slots(int number, std::span<const std::int32_t> wanted) {
  Layer& layer = layers_[static_cast<std::size_t>(number)];
  layer.policy->use(wanted);
  std::vector<std::int32_t> missing;
  for (const std::int32_t e : wanted) {
    ++usage_.uses[static_cast<std::size_t>(number)][static_cast<std::size_t>(e)];
    if (layer.slot_of[static_cast<std::size_t>(e)] < 0) missing.push_back(e);
  }
  usage_.hits += wanted.size() - missing.size();
  usage_.misses += missing.size();
  if (missing.empty()) return;
  Cache::Pass pass(host_, number, missing);
  std::size_t left = missing.size();
  for (auto residents = pass.next(); !residents.empty(); residents = pass.next()) {
    for (const Cache::Resident& resident : residents) {
      const std::int32_t slot = free_slot(layer, wanted);
      copy(resident.weights, layer.slots, slot);
      layer.expert_in[static_cast<std::size_t>(slot)] = resident.expert;
      layer.slot_of[static_cast<std::size_t>(resident.expert)] = slot;
    }
    left -= residents.size();
    if (left > 0) backend_.synchronize();  // the cache may read over what it handed out
  }
}

void DeviceTier::bring_all(int number, std::span<const std::int32_t> wanted) {
  Cache::Pass pass(host_, number, wanted);
  std::size_t left = wanted.size();
  for (auto residents = pass.next(); !residents.empty(); residents = pass.next()) {
    for (const Cache::Resident& resident : residents)
      copy(resident.weights, layers_[static_cast<std::size_t>(number)].all, resident.expert);
    left -= residents.size();
    if (left > 0) backend_.synchronize();
  }
}

void DeviceTier::bring(int number, const ops::View& places) {
  const auto start = std::chrono::steady_clock::now();
  const auto* ids = static_cast<const std::int32_t*>(chosen_.data());
  const auto k = static_cast<std::size_t>(options_.chosen);
  const std::size_t count = static_cast<std::size_t>(places.dim(0)) * k;
  // Also for all copies asked for before: their host memory may be used again.
  backend_.synchronize();
  usage_.wait_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::vector<std::int32_t> wanted(ids, ids + count);
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  const auto experts = static_cast<std::int32_t>(layers_[static_cast<std::size_t>(number)].slot_of.size());
  if (wanted.front() < 0 || wanted.back() >= experts)
    fail(ErrorKind::internal, "a router of {} experts chose {} to {}", experts, wanted.front(),
         wanted.back());
  const bool slots = uses_slots(places.dim(0));
  slots ? bring_to_slots(number, wanted) : bring_all(number, wanted);
  const Layer& layer = layers_[static_cast<std::size_t>(number)];
  const auto width = static_cast<std::size_t>(places.dim(1));
  const auto shared = static_cast<std::int32_t>(slots ? layer.expert_in.size() : layer.slot_of.size());
  auto* to = static_cast<std::int32_t*>(places_.data());
  for (std::size_t i = 0; i < count; ++i)
    to[i / k * width + i % k] = slots ? layer.slot_of[static_cast<std::size_t>(ids[i])] : ids[i];
  if (width > k)
    for (std::size_t t = 0; t < count / k; ++t) to[t * width + k] = shared;
  backend_.upload(places.data, to, count / k * width * sizeof(std::int32_t));
}

}  // namespace sluice::experts
