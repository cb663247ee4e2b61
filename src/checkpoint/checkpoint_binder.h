// Weights from a checkpoint folder, used in place in the mapped files.
#pragma once

#include <set>

#include "checkpoint/binder.h"
#include "checkpoint/quantization_plan.h"
#include "checkpoint/weight_store.h"

namespace sluice::checkpoint {

class CheckpointBinder final : public Binder {
 public:
  CheckpointBinder(WeightStore& store, const QuantizationPlan& plan);

  ops::Weight weight(const std::string& module, const ops::Shape& shape) override;
  ops::Weight reordered(const std::string& module, const ops::Shape& shape,
                        std::span<const std::int64_t> order) override;
  ops::ExpertWeights experts(const std::string& mlp, const std::string& projection,
                             const ops::Shape& shape) override;
  ops::ConstView parameter(const std::string& tensor, const ops::Shape& shape, ParameterKind kind) override;
  bool has(const std::string& module) const override;

  // Throws if a tensor of the language model was not requested, since it would be silently ignored. Vision
  // towers, draft heads, rotary tables and the names in `spare` are allowed.
  void refuse_unbound(std::span<const std::string> spare) const;

 private:
  std::string stored_name(const std::string& name) const;
  const TensorEntry* find(const std::string& stored);
  const TensorEntry& get(const std::string& stored);
  ops::Weight bind(const std::string& stored_module, const TensorEntry& values, const ops::Shape& shape);
  ops::ExpertWeights fused_experts(const TensorEntry& fused, const std::string& projection,
                                   const ops::Shape& shape);

  ops::ExpertWeights packed_experts(const TensorEntry& records, const std::string& projection,
                                    const ops::Shape& shape);

  WeightStore& store_;
  const QuantizationPlan& plan_;
  std::string prefix_;      // stored prefix in place of "model."
  bool zero_centered_raw_;  // norms are stored minus one
  std::set<std::string, std::less<>> used_;
};

}  // namespace sluice::checkpoint
