#include "experts/cache.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "experts/fingerprint.h"

namespace sluice::experts {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
// A device serves several reads of this size sooner than one of all their bytes.
constexpr std::size_t kRequestBytes = std::size_t{256} << 10;

}  // namespace

ops::Buffer reserve_memory(std::size_t bytes) {
  const std::size_t whole = (bytes + kHugePage - 1) / kHugePage * kHugePage + kHugePage;
  void* mapped =
      ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) fail(ErrorKind::resource, "no memory for {} bytes of experts", bytes);
  // The mapping is cut to an aligned one.
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped);
  const std::uintptr_t aligned = (begin + kHugePage - 1) / kHugePage * kHugePage;
  if (aligned > begin) ::munmap(mapped, aligned - begin);
  if (begin + kHugePage > aligned)
    ::munmap(reinterpret_cast<void*>(aligned + whole - kHugePage), begin + kHugePage - aligned);
  auto* data = reinterpret_cast<void*>(aligned);
  ::madvise(data, whole - kHugePage, MADV_HUGEPAGE);
  return {data, whole - kHugePage, [](void* memory, std::size_t size) { ::munmap(memory, size); }};
}

Cache::Cache(Store store, std::unique_ptr<Reader> reader, Options options)
    : store_(std::move(store)),
      reader_(std::move(reader)),
      options_(std::move(options)),
      layers_(static_cast<std::size_t>(store_.layers())) {
  for (int l = 0; l < store_.layers(); ++l) {
    const auto experts = static_cast<std::size_t>(store_.layer(l).experts());
    Layer& layer = this->layer(l);
    layer.slot_of.assign(experts, -1);
    layer.verified.assign(experts, false);
    for (std::size_t e = 0; e < experts; ++e)
      layer.fingerprints.push_back(store_.fingerprint_of(l, static_cast<std::int64_t>(e)));
    layer.policy = options_.policy(l);
    usage_.uses.emplace_back(experts);
  }
}

Cache::~Cache() = default;

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
  auto* base = static_cast<std::byte*>(layers_[static_cast<std::size_t>(layer)].memory.data());
  return base + slot * store_.slot_bytes(layer);
}

void Cache::drop(Layer& layer, std::size_t slot) {
  std::int32_t& expert = layer.slots[slot].expert;
  if (expert >= 0) layer.slot_of[static_cast<std::size_t>(expert)] = -1;
  expert = -1;
}

void Cache::set_slots(std::int64_t slots) {
  if (slots < 1) fail(ErrorKind::internal, "a layer needs at least one slot for its experts, not {}", slots);
  const std::lock_guard lock(turn_);
  slots_ = slots;
  for (int l = 0; l < store_.layers(); ++l) {
    Layer& layer = this->layer(l);
    const auto count = static_cast<std::size_t>(std::min(slots, store_.layer(l).experts()));
    const auto experts = static_cast<std::size_t>(store_.layer(l).experts());
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
  const auto e = static_cast<std::size_t>(expert);
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

Cache::Pass::Pass(Cache& cache, int layer, std::span<const std::int32_t> wanted)
    : cache_(cache), turn_(cache.turn_), layer_(layer) {
  Layer& place = cache_.layer(layer_);
  if (cache_.observer_) cache_.observer_(layer_, wanted);
  place.policy->use(wanted);
  for (const std::int32_t expert : wanted) {
    ++cache_.usage_.uses[static_cast<std::size_t>(layer_)][static_cast<std::size_t>(expert)];
    const std::int32_t slot = place.slot_of[static_cast<std::size_t>(expert)];
    if (slot < 0) {
      missing_.push_back(expert);
      continue;
    }
    Slot& found = place.slots[static_cast<std::size_t>(slot)];
    found.held = true;
    ready_.push_back({expert, found.weights});
  }
  std::reverse(missing_.begin(), missing_.end());
  cache_.usage_.hits += ready_.size();
  cache_.usage_.misses += missing_.size();
  start_reads();
}

Cache::Pass::~Pass() {
  missing_.clear();
  while (in_flight_ > 0) receive();
  for (Slot& slot : cache_.layer(layer_).slots) slot.held = false;
}

// A slot that this pass does not hold: an empty one, or the policy's victim's.
bool Cache::Pass::find_slot(std::size_t& slot) {
  Layer& place = cache_.layer(layer_);
  std::vector<std::int32_t> candidates;
  for (std::size_t s = 0; s < place.slots.size(); ++s) {
    if (place.slots[s].held) continue;
    slot = s;
    if (place.slots[s].expert < 0) return true;
    candidates.push_back(place.slots[s].expert);
  }
  if (candidates.empty()) return false;
  slot = static_cast<std::size_t>(place.slot_of[static_cast<std::size_t>(place.policy->victim(candidates))]);
  cache_.drop(place, slot);
  return true;
}

void Cache::Pass::start_reads() {
  Layer& place = cache_.layer(layer_);
  std::vector<Request> requests;
  std::size_t slot = 0;
  while (!missing_.empty() && find_slot(slot)) {
    const std::int32_t expert = missing_.back();
    missing_.pop_back();
    place.slots[slot] = {expert, true, {}};
    place.slot_of[static_cast<std::size_t>(expert)] = static_cast<std::int32_t>(slot);
    Loading loading{slot, 0, {}};
    for (const Piece& piece : cache_.store_.pieces(layer_, expert))
      for (std::size_t done = 0; done < piece.needed; done += kRequestBytes) {
        const std::size_t bytes = std::min(kRequestBytes, piece.bytes - done);
        requests.push_back({piece.file, piece.offset + done, cache_.memory(layer_, slot) + piece.at + done,
                            bytes, std::min(bytes, piece.needed - done),
                            static_cast<std::uint32_t>(loading_.size())});
        ++loading.reads;
        cache_.usage_.bytes_read += bytes;
      }
    loading_.push_back(std::move(loading));
  }
  if (requests.empty()) return;
  cache_.reader_->start(requests);
  in_flight_ += requests.size();
}

void Cache::Pass::receive() {
  const Completion completion = cache_.reader_->wait();
  --in_flight_;
  Loading& loading = loading_[completion.tag];
  if (!completion.error.empty()) loading.error = completion.error;
  if (--loading.reads == 0) finish(loading);
}

void Cache::Pass::finish(Loading& loading) {
  Layer& place = cache_.layer(layer_);
  Slot& slot = place.slots[loading.slot];
  const std::int32_t expert = slot.expert;
  slot.weights = cache_.store_.in_slot(layer_, expert, cache_.memory(layer_, loading.slot));
  if (loading.error.empty()) loading.error = cache_.check(layer_, expert, slot.weights);
  if (loading.error.empty()) return ready_.push_back({expert, slot.weights});
  cache_.drop(place, loading.slot);
  slot.held = false;
  if (error_.empty())
    error_ = fmt::format("cannot read {}: {}", cache_.store_.name(layer_, expert), loading.error);
}

std::span<const Cache::Resident> Cache::Pass::next() {
  Layer& place = cache_.layer(layer_);
  for (const Resident& resident : handed_out_)
    place.slots[static_cast<std::size_t>(place.slot_of[static_cast<std::size_t>(resident.expert)])].held =
        false;
  handed_out_.clear();
  start_reads();
  const auto start = std::chrono::steady_clock::now();
  const bool waits = ready_.empty();
  while (ready_.empty() && in_flight_ > 0 && error_.empty()) receive();
  if (waits)
    cache_.usage_.wait_seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!error_.empty()) {
    missing_.clear();
    fail(ErrorKind::resource, "{}", error_);
  }
  handed_out_.swap(ready_);
  return handed_out_;
}

}  // namespace sluice::experts
