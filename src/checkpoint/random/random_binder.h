// Random weights: for benchmarks of models that are not available, and for test files.
#pragma once

#include <cstdint>
#include <functional>

#include "base/thread_pool.h"
#include "checkpoint/binder.h"
#include "checkpoint/tensor_info.h"
#include "checkpoint/weight_store.h"

namespace sluice::checkpoint::random {

// One tensor as MLX would store it, and how to fill it.
struct RandomTensor {
  enum class Fill { bits, constant, uniform, formula };
  TensorInfo info;
  Fill fill = Fill::bits;
  double low = 0;  // or the constant
  double high = 0;
  std::function<double(std::int64_t row, std::int64_t column)> at = {};  // the formula
};

// How routers with random weights choose experts.
struct RandomRouting {
  double zipf = 0;          // the exponent of Zipf's law; 0: left to chance
  std::int64_t chosen = 0;  // experts per token
};

// Fills `to` with the tensor's contents, which depend on its name only.
void fill_random(const RandomTensor& tensor, std::span<std::byte> to);

// Quantises to `bits` (16: BF16, not quantised) in groups of 64, routers to 8 bits, as mlx-lm does. Values
// are scaled to keep activations near 1.
class RandomBinder final : public Binder {
 public:
  // With a store the tensors get memory that fill() writes; without one they are only listed.
  RandomBinder(int bits, WeightStore* store, RandomRouting routing = {})
      : bits_(bits), store_(store), routing_(routing) {}

  ops::Weight weight(const std::string& module, const ops::Shape& shape) override;
  ops::Weight reordered(const std::string& module, const ops::Shape& shape,
                        std::span<const std::int64_t> order) override;
  ops::ExpertWeights experts(const std::string& mlp, const std::string& projection,
                             const ops::Shape& shape) override;
  ops::ConstView parameter(const std::string& tensor, const ops::Shape& shape, ParameterKind kind) override;
  bool has(const std::string&) const override { return true; }

  using Progress = std::function<void(std::uint64_t done, std::uint64_t all)>;  // may throw
  void fill(ThreadPool& pool, const Progress& progress = {});
  const std::vector<RandomTensor>& tensors() const { return tensors_; }
  // Modules stored with 8 bits instead.
  const std::vector<std::string>& eight_bit_modules() const { return eight_bit_modules_; }

 private:
  ops::ConstView make(RandomTensor tensor);

  int bits_;
  WeightStore* store_;
  RandomRouting routing_;
  std::vector<RandomTensor> tensors_;
  std::vector<std::span<std::byte>> memory_;  // of each tensor, if there is a store
  std::vector<std::string> eight_bit_modules_;
};

}  // namespace sluice::checkpoint::random
