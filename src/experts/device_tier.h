// Experts in a device's memory: some slots a layer, filled over the bus from a cache in host memory.
#pragma once

#include <optional>

#include "experts/cache.h"
#include "sluice/ops/backend.h"

namespace sluice::experts {

// Experts as ops take them: one by one, the shared one last where it goes with them.
struct ExpertSet {
  std::vector<ops::Weight> gate_proj;
  std::vector<ops::Weight> up_proj;
  std::vector<ops::Weight> down_proj;

  void add(const Expert& expert);
};

class DeviceTier {
 public:
  struct Options {
    std::int64_t slots = 0;   // a layer
    std::int64_t tokens = 0;  // the most of one pass
    std::int64_t chosen = 0;  // experts a token
    std::function<std::unique_ptr<Policy>(int layer)> policy;
    std::function<ops::Buffer(std::size_t bytes)> pinned;  // host memory that the device copies from and to
    // A layer each, on the device: one more choice of every token; or nothing.
    std::vector<std::optional<Expert>> shared;
  };

  DeviceTier(ops::Backend& backend, Cache& host, Options options);

  // What so many slots a layer take on the device, and with them the place for all experts of one layer.
  static std::uint64_t bytes(const Store& store, std::int64_t slots);

  std::int64_t slots() const { return options_.slots; }
  // How many places a token's list has.
  std::int64_t places(int layer) const {
    return options_.chosen + (options_.shared[static_cast<std::size_t>(layer)] ? 1 : 0);
  }
  // What a pass of so many tokens computes with: the layer's slots where whatever it chooses finds room
  // there, else the place for all experts of one layer.
  const ExpertSet& experts(int layer, std::int64_t tokens) const;

  // Where a pass of so many tokens writes its choices: I32 [T,k] in memory that both sides see.
  ops::View chosen(std::int64_t tokens) const {
    return {chosen_.data(), ops::DType::i32, {tokens, options_.chosen}};
  }
  // Between two programs: brings the experts chosen into that set, and writes where they are to `places`, I32
  // [T,places(layer)].
  void bring(int layer, const ops::View& places);

  Usage usage() const { return usage_; }

 private:
  struct Layer {
    ops::Buffer memory;
    ExpertSet slots;
    ExpertSet all;
    std::vector<std::int32_t> slot_of;    // by expert; -1: none
    std::vector<std::int32_t> expert_in;  // by slot; -1: none
    std::unique_ptr<Policy> policy;
  };
  bool uses_slots(std::int64_t tokens) const { return tokens * options_.chosen <= options_.slots; }
  void copy(const Expert& from, const ExpertSet& to, std::int32_t place);
  void bring_to_slots(int layer, std::span<const std::int32_t> wanted);
  void bring_all(int layer, std::span<const std::int32_t> wanted);
  std::int32_t free_slot(Layer& layer, std::span<const std::int32_t> wanted);

  ops::Backend& backend_;
  Cache& host_;
  Options options_;
  std::vector<Layer> layers_;
  ops::Buffer all_;  // experts of one layer at a time
  ops::Buffer chosen_;
  ops::Buffer places_;
  Usage usage_;
};

}  // namespace sluice::experts
