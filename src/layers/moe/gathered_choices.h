// Choices of experts one by one: rows are gathered for the available experts, and results scattered.
// A choice's result depends on nothing else in a call, so the bits are those of all choices at once.
#pragma once

#include <span>
#include <vector>

#include "experts/cache.h"
#include "layers/device.h"

namespace sluice::layers::moe {

// One row's choice of an expert, and where the result goes.
struct Choice {
  std::int32_t expert;
  std::int32_t row;
  std::int32_t result;
};

// The choices of `chosen`, I32 [T,k]: choice j of row t has result t*k+j.
std::vector<Choice> choices_of(const ops::View& chosen);

// Choices by expert.
class Choices {
 public:
  explicit Choices(std::vector<Choice> choices);

  const std::vector<std::int32_t>& experts() const { return experts_; }  // distinct, rising
  std::span<const Choice> of(std::int32_t expert) const;

 private:
  std::vector<Choice> choices_;
  std::vector<std::int32_t> experts_;
};

// The experts of a layer: in memory, or in a cache that reads them as they are needed.
struct ExpertSupply {
  const ops::ExpertWeights& gate_proj;
  const ops::ExpertWeights& up_proj;
  const ops::ExpertWeights& down_proj;
  experts::Cache* cache = nullptr;
  int layer = 0;                               // of the cache
  std::span<const std::int32_t> guessed = {};  // that the next layer may need, to be read meanwhile
};

// What choices are computed from, and where their results go: both in host memory, both of one type, which is
// that of the activations or, where those are F32, BF16.
struct ChoiceRows {
  const void* from = nullptr;  // [rows, hidden]
  void* to = nullptr;          // [results, hidden]
  ops::DType type = ops::DType::f32;
};

// Rows gathered for one call of the two ops, and their results scattered.
class GatheredRows {
 public:
  // At most `most` rows per call, with experts of [experts, intermediate, hidden] like `gate_proj`.
  GatheredRows(Device& dev, const ChoiceRows& rows, const ops::Shape& gate_proj, std::int64_t most);

  void add(const experts::Expert& expert, const Choice& choice);
  void compute();
  // All choices.
  void compute(const Choices& choices, const ExpertSupply& supply);
  void compute(const Choices& choices, experts::Cache::Pass& pass);

 private:
  std::int64_t count() const { return std::ssize(targets_); }
  void gather(std::int32_t row);
  void scatter(std::int64_t row, std::int32_t result);
  std::span<float> floats(std::int64_t row);

  Device& dev_;
  const std::byte* from_;
  std::byte* to_;
  ops::DType type_;  // of both
  std::int64_t most_;
  ops::View rows_;
  ops::View inner_;
  ops::View ids_;
  std::size_t row_bytes_;
  std::vector<std::int32_t> targets_;
  std::vector<ops::Weight> gate_;
  std::vector<ops::Weight> up_;
  std::vector<ops::Weight> down_;
};

}  // namespace sluice::layers::moe
