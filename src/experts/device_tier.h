// Experts in a device's memory: slots per layer, filled over the bus from a cache in host memory.
#pragma once

#include <optional>
#include <string_view>

#include "experts/cache.h"
#include "experts/host_experts.h"
#include "experts/usage.h"
#include "sluice/ops/backend.h"

namespace sluice::experts {

// Experts in the form ops take them: one weight per expert, the shared expert last where there is one.
struct ExpertSet {
  std::vector<ops::Weight> gate_proj;
  std::vector<ops::Weight> up_proj;
  std::vector<ops::Weight> down_proj;

  void add(const Expert& expert);
};

// Who computes experts that are not on the device: the device, after copying them over the bus; the host, in
// place; or both, divided so that they finish at the same time.
enum class Miss { bus, cpu, automatic };
// "bus", "cpu" or "auto"; refuses other names.
Miss parse_miss(std::string_view name);

class DeviceTier {
 public:
  struct Options {
    std::int64_t slots = 0;   // per layer
    std::int64_t tokens = 0;  // largest pass
    std::int64_t chosen = 0;  // experts per token
    ops::DType activations = ops::DType::f32;
    std::function<std::unique_ptr<Policy>(int layer)> policy;
    // Per layer, a shared expert on the device, which is one more choice of every token; or none.
    std::vector<std::optional<Expert>> shared;
    Miss miss = Miss::bus;
    ops::Backend* cpu = nullptr;      // needed unless all experts are copied over the bus
    double bus_bytes_per_second = 0;  // for Miss::automatic
  };

  DeviceTier(ops::Backend& backend, Cache& host, Options options);
  ~DeviceTier();

  // Device memory for that many slots per layer, including the place for all experts of one layer.
  static std::uint64_t bytes(const Store& store, std::int64_t slots);

  std::int64_t slots() const { return options_.slots; }
  // Length of a token's list of places.
  std::int64_t places(int layer) const { return options_.chosen + (options_.shared[layer] ? 1 : 0); }
  // The weights that a pass of that many tokens uses: the layer's slots if all its choices surely fit there,
  // otherwise the place for all experts of one layer.
  const ExpertSet& experts(int layer, std::int64_t tokens) const;
  // Whether the host may compute some of the pass's experts.
  bool shares_work(std::int64_t tokens) const { return host_experts_ != nullptr && uses_slots(tokens); }

  // Whether a guess at the next layer's choices helps a pass of that many tokens.
  bool foresees(std::int64_t tokens) const { return uses_slots(tokens) ? host_keeps_all() : two_places_; }

  // Ops of a program, each paired with what the host does meanwhile. The experts in `chosen`, I32 [T,k], are
  // fetched into that set, and their positions are written to `places`, I32 [T,places(layer)].
  void publish_and_await(const ops::View& chosen, const ops::View& inputs, const ops::View& places);
  // The same in two ops, with a guess between them, I32 [T,k]: experts of it that the next layer lacks are
  // fetched early.
  void publish_choices(const ops::View& chosen, const ops::View& inputs);
  void await_slots(const ops::View& guessed, const ops::View& places);
  void fetch_missing(int layer, std::int64_t tokens, bool guessed);
  // After the products, if the host shares the work: its results replace those rows of `out`
  // [T,places(layer), hidden] that belong to its experts.
  void await_host_rows(const ops::View& out);
  void send_host_rows();

  Usage usage() const { return usage_; }

 private:
  struct Layer {
    ExpertSet slots;
    bool lends = false;  // its slots are part of the second place
    ExpertSet all;
    std::vector<std::int32_t> slot_of;    // by expert; -1: none
    std::vector<std::int32_t> expert_in;  // by slot; -1: none
    std::vector<std::uint32_t> mark;      // by slot: the upload that filled it
    std::vector<std::int32_t> ahead;      // experts fetched for the next pass
    std::unique_ptr<Policy> policy;
  };
  bool host_keeps_all() const;
  bool uses_slots(std::int64_t tokens) const { return tokens * options_.chosen <= options_.slots; }
  void upload(const Expert& from, const ExpertSet& to, std::int32_t place);
  std::size_t experts_of(int layer) const { return layers_[layer].slot_of.size(); }
  void count(Layer& layer, std::span<const std::int32_t> wanted, std::size_t missing);
  std::size_t host_share(std::size_t missing, std::size_t bytes) const;
  void fetch_to_slots(int layer, std::span<const std::int32_t> wanted);
  void fetch_ahead(int layer, std::span<const std::int32_t> guessed, bool slots);
  void lend_slots();
  void fetch_all(int layer, std::span<const std::int32_t> wanted);
  // Returns the slot.
  std::int32_t fill_slot(Layer& layer, const Cache::Resident& resident, std::span<const std::int32_t> wanted);
  bool admits(Layer& layer, std::int32_t expert, std::span<const std::int32_t> wanted);
  void compute(std::span<const Cache::Resident> residents);
  void send_slots(int layer, std::int64_t tokens);
  template <class F>
  void meet(F&& work);

  ops::Backend& backend_;
  Cache& host_;
  Options options_;
  std::vector<Layer> layers_;
  // A place for all experts of one layer, followed by all slots. If there are enough slots, prompts use the
  // first ones as a second place, so that one layer's experts are copied while the previous layer computes.
  ops::Buffer memory_;
  bool two_places_ = false;
  std::unique_ptr<ops::Meeting> meeting_;
  std::unique_ptr<HostExperts> host_experts_;
  // State of the current pass.
  std::vector<std::int32_t> chosen_;
  std::int64_t width_ = 0;  // length of a token's list of places
  const std::byte* inputs_ = nullptr;
  std::vector<Cache::Resident> later_;  // for the host to compute while the device does
  std::vector<std::int32_t> given_;     // rows of the results that the host computed
  Usage usage_;
  GuessRecord guesses_;
};

}  // namespace sluice::experts
