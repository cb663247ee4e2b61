#include "layers/moe/gathered_choices.h"

#include <algorithm>
#include <cstring>

#include "base/integer_cast.h"
#include "experts/float_rows.h"

namespace sluice::layers::moe {

std::vector<Choice> choices_of(const ops::View& chosen) {
  const auto* ids = static_cast<const std::int32_t*>(chosen.data);
  std::vector<Choice> choices;
  choices.reserve(to_size(chosen.elements()));
  for (int i = 0; i < to_int(chosen.elements()); ++i)
    choices.push_back({ids[i], i / to_int(chosen.dim(1)), i});
  return choices;
}

Choices::Choices(std::vector<Choice> choices) : choices_(std::move(choices)) {
  std::sort(choices_.begin(), choices_.end(), [](const Choice& a, const Choice& b) {
    return a.expert != b.expert ? a.expert < b.expert : a.result < b.result;
  });
  for (const Choice& choice : choices_)
    if (experts_.empty() || experts_.back() != choice.expert) experts_.push_back(choice.expert);
}

std::span<const Choice> Choices::of(std::int32_t expert) const {
  const auto first = std::lower_bound(choices_.begin(), choices_.end(), expert,
                                      [](const Choice& choice, std::int32_t e) { return choice.expert < e; });
  const auto end = std::find_if(first, choices_.end(), [&](const Choice& c) { return c.expert != expert; });
  return {first, end};
}

GatheredRows::GatheredRows(Device& dev, const ChoiceRows& rows, const ops::Shape& gate_proj,
                           std::int64_t most)
    : dev_(dev),
      from_(static_cast<const std::byte*>(rows.from)),
      to_(static_cast<std::byte*>(rows.to)),
      type_(rows.type),
      most_(most),
      rows_(dev.take({most, gate_proj[2]})),
      inner_(dev.take({most, 1, gate_proj[1]})),
      ids_(dev.take({most, 1}, ops::DType::i32)),
      row_bytes_(to_size(gate_proj[2]) * size_bytes(type_)) {}

std::span<float> GatheredRows::floats(std::int64_t row) {
  return {static_cast<float*>(rows_[row].data), to_size(rows_.dim(1))};
}

void GatheredRows::gather(std::int32_t row) {
  const std::byte* from = from_ + to_size(row) * row_bytes_;
  if (type_ == rows_.dtype)
    std::memcpy(rows_[count()].data, from, row_bytes_);
  else
    experts::to_floats(from, type_, floats(count()));
}

void GatheredRows::scatter(std::int64_t row, std::int32_t result) {
  std::byte* to = to_ + to_size(result) * row_bytes_;
  if (type_ == rows_.dtype)
    std::memcpy(to, rows_[row].data, row_bytes_);
  else
    experts::from_floats(floats(row), type_, to);
}

void GatheredRows::add(const experts::Expert& expert, const Choice& choice) {
  if (count() == most_) compute();
  if (gate_.empty() || gate_.back().values.data != expert.gate_proj.values.data) {
    gate_.push_back(expert.gate_proj);
    up_.push_back(expert.up_proj);
    down_.push_back(expert.down_proj);
  }
  gather(choice.row);
  static_cast<std::int32_t*>(ids_.data)[targets_.size()] = to_int(gate_.size()) - 1;
  targets_.push_back(choice.result);
}

void GatheredRows::compute() {
  if (targets_.empty()) return;
  const ops::View inner = inner_.rows(0, count());
  const ops::View ids = ids_.rows(0, count());
  // The gathered rows are no longer needed when their results come.
  const ops::View rows = rows_.rows(0, count());
  const ops::View results = rows.reshaped({count(), 1, rows.dim(1)});
  dev_.run(ops::ExpertGateUpSwiglu{.x = rows,
                                   .gate_w = {.stack = {}, .separate = gate_},
                                   .up_w = {.stack = {}, .separate = up_},
                                   .experts = ids,
                                   .out = inner});
  dev_.run(
      ops::ExpertMatmul{.x = inner, .w = {.stack = {}, .separate = down_}, .experts = ids, .out = results});
  for (std::int64_t i = 0; i < count(); ++i) scatter(i, targets_[to_size(i)]);
  targets_.clear();
  gate_.clear();
  up_.clear();
  down_.clear();
}

void GatheredRows::compute(const Choices& choices, const ExpertSupply& supply) {
  if (choices.experts().empty()) return;
  if (supply.cache != nullptr) {
    experts::Cache::Pass pass(*supply.cache, supply.layer, choices.experts());
    const bool few = !supply.guessed.empty() && std::ssize(supply.guessed) <= supply.cache->slots();
    if (few && pass.trusts_guesses()) pass.read_ahead(supply.layer + 1, supply.guessed);
    return compute(choices, pass);
  }
  for (const std::int32_t expert : choices.experts())
    for (const Choice& choice : choices.of(expert))
      add({supply.gate_proj[expert], supply.up_proj[expert], supply.down_proj[expert]}, choice);
  compute();
}

void GatheredRows::compute(const Choices& choices, experts::Cache::Pass& pass) {
  for (auto residents = pass.next(); !residents.empty(); residents = pass.next()) {
    for (const experts::Cache::Resident& resident : residents)
      for (const Choice& choice : choices.of(resident.expert)) add(resident.weights, choice);
    compute();
  }
}

}  // namespace sluice::layers::moe
