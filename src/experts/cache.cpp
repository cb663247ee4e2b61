#include "experts/cache.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/integer_cast.h"
#include "base/large_pages.h"
#include "experts/fingerprint.h"

namespace sluice::experts {

namespace {

// A device serves several requests of this size sooner than one request for all their bytes.
constexpr std::size_t kRequestBytes = std::size_t{256} << 10;

}  // namespace

ops::Buffer reserve_memory(std::size_t bytes) {
  const std::size_t whole = (bytes + kLargePage - 1) / kLargePage * kLargePage + kLargePage;
  void* mapped =
      ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) fail(ErrorKind::resource, "no memory for {} bytes of experts", bytes);
  // Cut the mapping to an aligned part.
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped);
  const std::uintptr_t aligned = (begin + kLargePage - 1) / kLargePage * kLargePage;
  if (aligned > begin) ::munmap(mapped, aligned - begin);
  if (begin + kLargePage > aligned)
    ::munmap(reinterpret_cast<void*>(aligned + whole - kLargePage), begin + kLargePage - aligned);
  auto* data = reinterpret_cast<void*>(aligned);
  ::madvise(data, whole - kLargePage, MADV_HUGEPAGE);
  return {data, whole - kLargePage, [](void* memory, std::size_t size) { ::munmap(memory, size); }};
}

Cache::Cache(Store store, std::unique_ptr<Reader> reader, Options options)
    : store_(std::move(store)),
      reader_(std::move(reader)),
      options_(std::move(options)),
      layers_(to_size(store_.layers())) {
  for (int l = 0; l < store_.layers(); ++l) {
    const std::size_t experts = store_.layer(l).experts();
    Layer& layer = this->layer(l);
    layer.slot_of.assign(experts, -1);
    layer.verified.assign(experts, false);
    for (std::size_t e = 0; e < experts; ++e)
      layer.fingerprints.push_back(store_.fingerprint_of(l, static_cast<std::int64_t>(e)));
    layer.policy = options_.policy(l);
    usage_.uses.emplace_back(experts);
  }
}

Cache::~Cache() {
  while (in_flight_ > 0) receive();
}

std::uint64_t Cache::bytes(std::int64_t slots) const {
  std::uint64_t sum = 0;
  for (int l = 0; l < store_.layers(); ++l)
    sum += store_.slot_bytes(l) * static_cast<std::uint64_t>(std::min(slots, store_.layer(l).experts()));
  return sum;
}

Usage Cache::usage() const {
  const std::lock_guard lock(turn_);
  return usage_;
}

void Cache::observe(std::function<void(int, std::span<const std::int32_t>)> observer) {
  const std::lock_guard lock(turn_);
  observer_ = std::move(observer);
}

std::byte* Cache::memory(int layer, std::size_t slot) const {
  auto* base = static_cast<std::byte*>(layers_[layer].memory.data());
  return base + slot * store_.slot_bytes(layer);
}

void Cache::drop(Layer& layer, std::size_t slot) {
  std::int32_t& expert = layer.slots[slot].expert;
  if (expert >= 0) layer.slot_of[expert] = -1;
  usage_.unused += std::erase(layer.ahead, expert);
  expert = -1;
}

void Cache::set_slots(std::int64_t slots) {
  if (slots < 1) fail(ErrorKind::internal, "a layer needs at least one slot for its experts, not {}", slots);
  const std::lock_guard lock(turn_);
  while (in_flight_ > 0) receive();
  slots_ = slots;
  for (int l = 0; l < store_.layers(); ++l) {
    Layer& layer = this->layer(l);
    const std::size_t count = std::min(slots, store_.layer(l).experts());
    const std::size_t experts = store_.layer(l).experts();
    if (layer.memory.data() == nullptr)
      layer.memory = options_.memory(store_.slot_bytes(l) * (options_.whole ? experts : count));
    for (std::size_t s = count; s < layer.slots.size(); ++s) drop(layer, s);
    if (count < layer.slots.size())
      ::madvise(memory(l, count), store_.slot_bytes(l) * (layer.slots.size() - count), MADV_DONTNEED);
    layer.slots.resize(count);
  }
}

std::string Cache::check(int number, std::int32_t expert, const Expert& weights) {
  Layer& layer = this->layer(number);
  const std::size_t e = expert;
  const std::vector<Piece> pieces = store_.pieces(number, expert);
  const auto unchanged = [this](const Piece& piece) { return reader_->unchanged(piece.file); };
  if (layer.verified[e] && std::all_of(pieces.begin(), pieces.end(), unchanged)) return {};
  std::uint64_t& known = layer.fingerprints[e];
  const std::uint64_t read = fingerprint(weights);
  if (known == 0) known = read;
  layer.verified[e] = known == read;
  return layer.verified[e] ? ""
                           : "its bytes are not those that were written: the file is damaged or has changed";
}

std::optional<Cache::Resident> Cache::find(int number, std::int32_t expert) const {
  const std::lock_guard lock(turn_);
  const Layer& layer = layers_[number];
  const std::int32_t slot = layer.slot_of[expert];
  if (slot < 0 || layer.slots[slot].loading) return {};
  return Resident{expert, layer.slots[slot].weights};
}

bool Cache::find_slot(Layer& layer, std::span<const std::int32_t> kept, std::size_t& slot) {
  std::vector<std::int32_t> candidates;
  for (std::size_t s = 0; s < layer.slots.size(); ++s) {
    const Slot& place = layer.slots[s];
    if (place.held || place.loading || std::find(kept.begin(), kept.end(), place.expert) != kept.end())
      continue;
    slot = s;
    if (place.expert < 0) return true;
    candidates.push_back(place.expert);
  }
  if (candidates.empty()) return false;
  slot = to_size(layer.slot_of[layer.policy->victim(candidates)]);
  drop(layer, slot);
  return true;
}

void Cache::load(Loading loading, std::int32_t expert, std::vector<Request>& requests) {
  Layer& layer = this->layer(loading.layer);
  layer.slots[loading.slot] = {expert, !loading.ahead, true, {}};
  layer.slot_of[expert] = to_int(loading.slot);
  if (free_.empty()) {
    free_.push_back(to_unsigned(loading_.size()));
    loading_.emplace_back();
  }
  const std::uint32_t tag = free_.back();
  free_.pop_back();
  for (const Piece& piece : store_.pieces(loading.layer, expert))
    for (std::size_t done = 0; done < piece.needed; done += kRequestBytes) {
      const std::size_t bytes = std::min(kRequestBytes, piece.bytes - done);
      requests.push_back({piece.file, piece.offset + done,
                          memory(loading.layer, loading.slot) + piece.at + done, bytes,
                          std::min(bytes, piece.needed - done), tag});
      ++loading.reads;
      usage_.bytes_read += bytes;
    }
  loading_[tag] = std::move(loading);
}

void Cache::start(std::span<const Request> requests) {
  if (requests.empty()) return;
  reader_->start(requests);
  in_flight_ += requests.size();
}

std::optional<Cache::Arrival> Cache::receive() {
  Completion completion = reader_->wait();
  --in_flight_;
  Loading& loading = loading_[completion.tag];
  if (!completion.error.empty()) loading.error = std::move(completion.error);
  if (--loading.reads > 0) return {};
  free_.push_back(completion.tag);
  Layer& layer = this->layer(loading.layer);
  Slot& slot = layer.slots[loading.slot];
  Arrival arrival{loading.layer, slot.expert, loading.ahead, loading.error};
  slot.loading = false;
  slot.weights = store_.in_slot(loading.layer, slot.expert, memory(loading.layer, loading.slot));
  if (arrival.error.empty()) arrival.error = check(loading.layer, slot.expert, slot.weights);
  if (arrival.error.empty()) return arrival;
  drop(layer, loading.slot);
  slot.held = false;
  return arrival;
}

Cache::Pass::Pass(Cache& cache, int layer, std::span<const std::int32_t> wanted)
    : cache_(cache), turn_(cache.turn_), layer_(layer) {
  Layer& place = cache_.layer(layer_);
  if (cache_.observer_) cache_.observer_(layer_, wanted);
  place.policy->use(wanted);
  for (const std::int32_t expert : wanted) {
    const std::int32_t slot = place.slot_of[expert];
    if (slot < 0) {
      missing_.push_back(expert);
      continue;
    }
    Slot& found = place.slots[slot];
    found.held = true;
    if (found.loading)
      awaited_.push_back(expert);
    else
      ready_.push_back({expert, found.weights});
  }
  std::reverse(missing_.begin(), missing_.end());
  count(wanted);
  start_reads();
}

// Experts that were read ahead for this pass and are wanted still count as misses, because they had to be
// read.
void Cache::Pass::count(std::span<const std::int32_t> wanted) {
  std::vector<std::int32_t>& ahead = cache_.layer(layer_).ahead;
  Usage& usage = cache_.usage_;
  for (const std::int32_t expert : wanted) ++usage.uses[layer_][expert];
  const auto foreseen = to_size(std::count_if(ahead.begin(), ahead.end(), [&](std::int32_t expert) {
    return std::find(wanted.begin(), wanted.end(), expert) != wanted.end();
  }));
  usage.misses += missing_.size() + foreseen;
  usage.hits += wanted.size() - missing_.size() - foreseen;
  usage.foreseen += foreseen;
  usage.unused += ahead.size() - foreseen;
  if (!ahead.empty()) cache_.guesses_.learn(foreseen, ahead.size() - foreseen);
  ahead.clear();
}

Cache::Pass::~Pass() {
  while (!awaited_.empty()) receive();
  for (Slot& slot : cache_.layer(layer_).slots) slot.held = false;
}

void Cache::Pass::start_reads() {
  std::vector<Request> requests;
  std::size_t slot = 0;
  while (!missing_.empty() && cache_.find_slot(cache_.layer(layer_), {}, slot)) {
    cache_.load({layer_, slot}, missing_.back(), requests);
    awaited_.push_back(missing_.back());
    missing_.pop_back();
  }
  cache_.start(requests);
}

void Cache::Pass::read_ahead(int layer, std::span<const std::int32_t> guessed) {
  Layer& place = cache_.layer(layer);
  std::vector<Request> requests;
  std::size_t slot = 0;
  for (const std::int32_t expert : guessed) {
    if (place.slot_of[expert] >= 0) continue;
    if (!cache_.find_slot(place, guessed, slot)) break;
    cache_.load({layer, slot, true}, expert, requests);
    place.ahead.push_back(expert);
  }
  cache_.start(requests);
}

void Cache::Pass::receive() {
  const std::optional<Arrival> arrival = cache_.receive();
  if (!arrival || arrival->layer != layer_) return;
  const auto awaited = std::find(awaited_.begin(), awaited_.end(), arrival->expert);
  if (awaited == awaited_.end()) return;
  awaited_.erase(awaited);
  const Layer& place = cache_.layer(layer_);
  if (arrival->error.empty()) {
    const std::int32_t slot = place.slot_of[arrival->expert];
    ready_.push_back({arrival->expert, place.slots[slot].weights});
  } else if (arrival->ahead) {
    missing_.push_back(arrival->expert);
  } else if (error_.empty()) {
    error_ = fmt::format("cannot read {}: {}", cache_.store_.name(layer_, arrival->expert), arrival->error);
  }
}

std::span<const Cache::Resident> Cache::Pass::next() {
  Layer& place = cache_.layer(layer_);
  for (const Resident& resident : handed_out_) place.slots[place.slot_of[resident.expert]].held = false;
  handed_out_.clear();
  start_reads();
  const auto start = Clock::now();
  const bool waits = ready_.empty();
  while (ready_.empty() && error_.empty() && (!awaited_.empty() || !missing_.empty())) {
    receive();
    start_reads();  // if all slots were taken by reads ahead
  }
  // Multiplying several experts together is faster, so also take what has already arrived.
  while (!awaited_.empty() && error_.empty() && cache_.reader_->ready()) receive();
  if (waits) cache_.usage_.wait_seconds += seconds_since(start);
  if (!error_.empty()) {
    missing_.clear();
    fail(ErrorKind::resource, "{}", error_);
  }
  handed_out_.swap(ready_);
  return handed_out_;
}

}  // namespace sluice::experts
