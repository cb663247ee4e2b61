#include "engine/sample_slots.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>

#include "base/error.h"
#include "base/integer_cast.h"
#include "sampling/settings.h"

namespace sluice::engine {

namespace {

using ops::DType;

constexpr std::int64_t kTop = ops::Sample::kMostLogprobs;
constexpr std::int64_t kFirstRoom = 512;

// The settings as words, grouped by kind for all slots.
enum Word : std::int64_t {
  kTemperature,
  kTopP,
  kMinP,
  kRepetition,
  kPresence,
  kFrequency,
  kTopK,
  kLogprobs,
  kSeed,  // two
  kWords = kSeed + 2,
};

std::size_t size(std::int64_t count) {
  return to_size(count);
}

bool penalises(const SamplingSettings& settings) {
  const auto is = [](double given, float none) {
    return static_cast<float>(given) != none;
  };  // as rows store it
  return is(settings.repetition_penalty, 1) || is(settings.presence_penalty, 0) ||
         is(settings.frequency_penalty, 0);
}

std::unordered_map<std::int32_t, std::int32_t> count(std::span<const std::int32_t> past, int window) {
  if (window > 0 && past.size() > size(window)) past = past.last(size(window));
  std::unordered_map<std::int32_t, std::int32_t> counts;
  for (const std::int32_t id : past) ++counts[id];
  return counts;
}

// The tokens whose counts differ, with the new counts.
std::vector<std::pair<std::int32_t, std::int32_t>> changes(
    const std::unordered_map<std::int32_t, std::int32_t>& from,
    const std::unordered_map<std::int32_t, std::int32_t>& to) {
  std::vector<std::pair<std::int32_t, std::int32_t>> changed;
  for (const auto& [id, old] : from)
    if (!to.contains(id)) changed.emplace_back(id, 0);
  for (const auto& [id, now] : to)
    if (const auto old = from.find(id); old == from.end() || old->second != now)
      changed.emplace_back(id, now);
  return changed;
}

}  // namespace

std::uint64_t SampleSlots::bytes(std::int64_t slots, std::int64_t vocab) {
  const std::int64_t words = kWords + vocab + 2 * kFirstRoom + 1 + 2 * kTop;
  return slots * (words * 4 + (vocab + 7) / 8);
}

std::uint64_t SampleSlots::grown_bytes() const {
  return slots() * (room_ - kFirstRoom) * 2 * 4;
}

SampleSlots::SampleSlots(ops::Backend& backend, std::int64_t slots, std::int64_t vocab)
    : backend_(backend),
      vocab_(vocab),
      room_(kFirstRoom),
      slots_(size(slots)),
      words_(size(slots * kWords)),
      numbers_(backend.allocate(size(slots * kWords) * 4)),
      counts_(backend.allocate(size(slots * vocab) * 4)),
      allowed_(backend.allocate(size(slots * mask_bytes()))),
      bias_ids_(backend.allocate(size(slots * room_) * 4)),
      bias_(backend.allocate(size(slots * room_) * 4)),
      logprob_(backend.allocate(size(slots) * 4)),
      top_ids_(backend.allocate(size(slots * kTop) * 4)),
      top_logprobs_(backend.allocate(size(slots * kTop) * 4)) {
  const std::vector<std::uint8_t> all(size(slots * mask_bytes()), 0xff);
  backend.upload(allowed_.data(), all.data(), all.size());
  const std::vector<std::int32_t> none(size(slots * room_), -1);
  backend.upload(bias_ids_.data(), none.data(), none.size() * 4);
  for (std::int64_t slot = 0; slot < slots; ++slot) set_numbers(slot, {});
}

void SampleSlots::set(std::int64_t slot, const SampleRequest& request, std::int64_t candidates) {
  sampling::check(request.settings, candidates);
  set_mask(slot, request.allowed, candidates);
  set_numbers(slot, request.settings);
  set_biases(slot, request.settings);
  set_counts(slot, request);
}

void SampleSlots::set_numbers(std::int64_t slot, const SamplingSettings& settings) {
  slots_[size(slot)].draws = static_cast<float>(settings.temperature) > 0;
  slots_[size(slot)].logprobs = settings.logprobs;
  bool changed = false;
  const auto put = [&](std::int64_t at, std::uint32_t value) {
    changed |= words_[size(at)] != value;
    words_[size(at)] = value;
  };
  const auto real = [&](Word word, double value) {
    put(word * slots() + slot, std::bit_cast<std::uint32_t>(static_cast<float>(value)));
  };
  real(kTemperature, settings.temperature);
  real(kTopP, settings.top_p);
  real(kMinP, settings.min_p);
  real(kRepetition, settings.repetition_penalty);
  real(kPresence, settings.presence_penalty);
  real(kFrequency, settings.frequency_penalty);
  put(kTopK * slots() + slot, static_cast<std::uint32_t>(settings.top_k));
  put(kLogprobs * slots() + slot, static_cast<std::uint32_t>(settings.logprobs));
  put(kSeed * slots() + 2 * slot, static_cast<std::uint32_t>(settings.seed));
  put(kSeed * slots() + 2 * slot + 1, static_cast<std::uint32_t>(settings.seed >> 32));
  if (changed) backend_.upload(numbers_.data(), words_.data(), words_.size() * 4);
}

void SampleSlots::make_room(std::size_t biases) {
  if (static_cast<std::int64_t>(biases) <= room_) return;
  while (room_ < static_cast<std::int64_t>(biases)) room_ *= 2;
  backend_.synchronize();
  bias_ids_ = backend_.allocate(size(slots() * room_) * 4);
  bias_ = backend_.allocate(size(slots() * room_) * 4);
  const std::vector<std::int32_t> none(size(slots() * room_), -1);
  backend_.upload(bias_ids_.data(), none.data(), none.size() * 4);
  ++version_;
  for (std::int64_t slot = 0; slot < slots(); ++slot) {
    SamplingSettings settings;
    const auto biases_before = std::exchange(slots_[size(slot)].biases, {});
    settings.logit_bias.assign(biases_before.begin(), biases_before.end());
    set_biases(slot, settings);
  }
}

void SampleSlots::set_biases(std::int64_t slot, const SamplingSettings& settings) {
  std::map<std::int32_t, double> sums;  // a token may occur twice
  for (const auto& [id, bias] : settings.logit_bias) sums[id] += bias;
  const std::vector<std::pair<std::int32_t, float>> biases(sums.begin(), sums.end());
  if (biases == slots_[size(slot)].biases) return;
  make_room(biases.size());
  std::vector<std::int32_t> ids(size(room_), -1);
  std::vector<float> values(size(room_));
  for (std::size_t i = 0; i < biases.size(); ++i) std::tie(ids[i], values[i]) = biases[i];
  const std::size_t row = size(slot * room_) * 4;
  backend_.upload(static_cast<std::byte*>(bias_ids_.data()) + row, ids.data(), ids.size() * 4);
  backend_.upload(static_cast<std::byte*>(bias_.data()) + row, values.data(), values.size() * 4);
  slots_[size(slot)].biases = biases;
}

void SampleSlots::set_mask(std::int64_t slot, std::span<const std::uint8_t> allowed,
                           std::int64_t candidates) {
  if (allowed.empty() && !slots_[size(slot)].masked) return;
  std::vector<std::uint8_t> bits(size(mask_bytes()), 0xff);
  if (!allowed.empty()) {
    if (allowed.size() < size((candidates + 7) / 8))
      fail(ErrorKind::input, "sampling: the mask of row {} has {} bytes, {} tokens need {}", slot,
           allowed.size(), candidates, (candidates + 7) / 8);
    std::copy_n(allowed.begin(), std::min(allowed.size(), bits.size()), bits.begin());
    const auto whole = bits.begin() + candidates / 8;
    const bool last = candidates % 8 != 0 && (*whole & ((1u << candidates % 8) - 1)) != 0;
    if (!last && std::all_of(bits.begin(), whole, [](std::uint8_t byte) { return byte == 0; }))
      fail(ErrorKind::input, "sampling: the mask of row {} allows no token", slot);
  }
  backend_.upload(static_cast<std::byte*>(allowed_.data()) + slot * mask_bytes(), bits.data(), bits.size());
  slots_[size(slot)].masked = !allowed.empty();
}

void SampleSlots::set_counts(std::int64_t slot, const SampleRequest& request) {
  Counted& held = slots_[size(slot)].counted;
  const bool was_current = std::exchange(held.current, false);  // false until the op has run
  held.penalised = penalises(request.settings);
  if (!held.penalised) return;
  const int window = request.settings.penalty_window;
  const bool same_window = std::exchange(held.window, window) == window;
  if (was_current && request.follows && window == 0 && same_window) return;
  auto counts = count(request.past, window);
  const auto changed = changes(was_current ? held.counts : decltype(counts){}, counts);
  held.counts = std::move(counts);
  auto* const row = static_cast<std::int32_t*>(counts_.data()) + slot * vocab_;
  constexpr std::size_t kFew = 16;
  if (was_current && changed.size() <= kFew) {
    for (const auto& [id, now] : changed) backend_.upload(row + id, &now, sizeof(now));
    return;
  }
  std::vector<std::int32_t> all(size(vocab_));
  for (const auto& [id, occurred] : held.counts) all[size(id)] = occurred;
  backend_.upload(row, all.data(), all.size() * sizeof(std::int32_t));
}

bool SampleSlots::plain(std::span<const std::int64_t> slots) const {
  return std::none_of(slots.begin(), slots.end(), [this](std::int64_t slot) {
    return slots_[size(slot)].draws || slots_[size(slot)].logprobs >= 0;
  });
}

ops::ConstView SampleSlots::numbers(std::int64_t first, DType type) const {
  return {static_cast<const std::uint32_t*>(numbers_.data()) + first * slots(), type, {slots()}};
}

ops::Sample SampleSlots::op(const Rows& rows, std::int64_t candidates, bool plain) const {
  const std::int64_t count = rows.logits.dim(0);
  const std::int64_t entries = slots();
  const auto of_all = [&](const ops::Buffer& buffer, DType type, std::int64_t used, std::int64_t width) {
    return ops::View(buffer.data(), type, {entries, used}, {width, 1});
  };
  const auto number = [&](Word word) { return numbers(word, DType::f32); };
  ops::Sample op;
  op.logits = rows.logits.columns(0, candidates, {candidates});
  op.positions = rows.positions;
  op.ids = rows.ids;
  op.slots = rows.slots;
  op.counts = of_all(counts_, DType::i32, candidates, vocab_);
  op.bias_ids = of_all(bias_ids_, DType::i32, room_, room_);
  op.bias = of_all(bias_, DType::f32, room_, room_);
  op.allowed = of_all(allowed_, DType::u8, (candidates + 7) / 8, mask_bytes());
  op.repetition_penalty = number(kRepetition);
  op.presence_penalty = number(kPresence);
  op.frequency_penalty = number(kFrequency);
  if (plain) return op;
  op.logprob = ops::View(logprob_.data(), DType::f32, {count});
  op.top_ids = ops::View(top_ids_.data(), DType::i32, {count, kTop});
  op.top_logprobs = ops::View(top_logprobs_.data(), DType::f32, {count, kTop});
  op.temperature = number(kTemperature);
  op.top_p = number(kTopP);
  op.min_p = number(kMinP);
  op.top_k = numbers(kTopK, DType::i32);
  op.logprobs = numbers(kLogprobs, DType::i32);
  op.seed = ops::ConstView(numbers(kSeed, DType::i32).data, DType::i32, {entries, 2});
  return op;
}

std::vector<SampledToken> SampleSlots::read(const ops::ConstView& ids, std::span<const std::int64_t> slots) {
  std::vector<SampledToken> tokens(slots.size());
  std::vector<std::int32_t> chosen(slots.size());
  backend_.download(chosen.data(), ids.data, chosen.size() * sizeof(std::int32_t));
  bool asked = false;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    tokens[i].id = chosen[i];
    Slot& slot = slots_[size(slots[i])];
    asked |= slot.logprobs >= 0;
    slot.counted.current = slot.counted.penalised;
    if (slot.counted.penalised) ++slot.counted.counts[chosen[i]];
  }
  if (!asked) return tokens;
  std::vector<float> logprob(slots.size());
  std::vector<std::int32_t> top_ids(slots.size() * size(kTop));
  std::vector<float> top(top_ids.size());
  backend_.download(logprob.data(), logprob_.data(), logprob.size() * sizeof(float));
  backend_.download(top_ids.data(), top_ids_.data(), top_ids.size() * sizeof(std::int32_t));
  backend_.download(top.data(), top_logprobs_.data(), top.size() * sizeof(float));
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots_[size(slots[i])].logprobs < 0) continue;
    tokens[i].logprob = logprob[i];
    for (std::size_t k = i * size(kTop); k < (i + 1) * size(kTop) && top_ids[k] >= 0; ++k)
      tokens[i].top.push_back({top_ids[k], top[k]});
  }
  return tokens;
}

}  // namespace sluice::engine
