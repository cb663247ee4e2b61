// Experts in memory: some slots per layer, filled from a store as passes need them.
#pragma once

#include <functional>
#include <mutex>
#include <optional>

#include "experts/policy.h"
#include "experts/reader.h"
#include "experts/store.h"
#include "experts/usage.h"
#include "sluice/ops/buffer.h"

namespace sluice::experts {

// Memory that is used only once it is written to, aligned to 2 MiB.
ops::Buffer reserve_memory(std::size_t bytes);

// How good guesses at experts have been lately.
class GuessRecord {
 public:
  void learn(std::size_t right, std::size_t wrong) {
    right_ = kKept * right_ + right;
    wrong_ = kKept * wrong_ + wrong;
  }
  // Whether to act on a guess: more of what was read for guesses than not must have been needed. Bad ones get
  // a chance now and then.
  bool trusted() { return right_ >= wrong_ || ++refused_ % kChance == 0; }

 private:
  static constexpr double kKept = 0.98;
  static constexpr unsigned kChance = 32;
  double right_ = 1;
  double wrong_ = 0;
  unsigned refused_ = 0;
};

class Cache {
 public:
  struct Options {
    std::function<std::unique_ptr<Policy>(int layer)> policy;  // called when the cache is made
    // Called once per layer when its slots are first set. `whole`: for all experts, as it takes no memory
    // until it is written to; else for the slots, whose number then stays.
    std::function<ops::Buffer(std::size_t bytes)> memory = reserve_memory;
    bool whole = true;
  };

  Cache(Store store, std::unique_ptr<Reader> reader, Options options);
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  const Store& store() const { return store_; }
  const Reader& reader() const { return *reader_; }
  // Slots a layer, at least 1 and at most its experts. Gives memory back where there are fewer than before.
  void set_slots(std::int64_t slots);
  std::int64_t slots() const { return slots_; }
  // Bytes of all layers' slots with so many a layer.
  std::uint64_t bytes(std::int64_t slots) const;
  Usage usage() const;
  // `observer` hears of every pass before it is served.
  void observe(std::function<void(int layer, std::span<const std::int32_t> experts)> observer);

  // An expert that a pass may use.
  struct Resident {
    std::int32_t expert = 0;
    Expert weights;
  };
  // The expert where it is in memory; for callers that know that it stays there.
  std::optional<Resident> find(int layer, std::int32_t expert) const;
  // One layer's experts for one pass. Several threads take turns.
  class Pass {
   public:
    // Starts reading those of `wanted` (distinct) that are in no slot, as many as there are slots for.
    Pass(Cache& cache, int layer, std::span<const std::int32_t> wanted);
    // Waits for what is in flight.
    ~Pass();
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

    // Experts that are there now, each of the wanted ones once: those in slots first, then the others as they
    // arrive. What was handed out before may be overwritten. Empty when all have been handed out. Throws
    // where an expert could not be read; the cache stays usable.
    std::span<const Resident> next();

    // Whether guesses have been good enough to make another.
    bool trusts_guesses() { return cache_.guesses_.trusted(); }
    // Starts reading experts that the next pass over another layer may need and does not wait for them. A
    // read that fails is as if there had been none.
    void read_ahead(int layer, std::span<const std::int32_t> guessed);

   private:
    void count(std::span<const std::int32_t> wanted);
    void start_reads();
    void receive();

    Cache& cache_;
    std::lock_guard<std::mutex> turn_;
    int layer_;
    std::vector<std::int32_t> missing_;  // not yet started, the next one last
    std::vector<std::int32_t> awaited_;  // being read
    std::vector<Resident> ready_;        // not yet handed out
    std::vector<Resident> handed_out_;
    std::string error_;
  };

 private:
  struct Slot {
    std::int32_t expert = -1;
    bool held = false;     // by the pass that runs
    bool loading = false;  // being read
    Expert weights;        // once read
  };
  struct Layer {
    ops::Buffer memory;
    std::vector<Slot> slots;
    std::vector<std::int32_t> slot_of;        // by expert; -1: none
    std::vector<std::uint64_t> fingerprints;  // by expert, as stored or first read; 0: not known
    std::vector<bool> verified;               // by expert: bytes with that fingerprint were read
    std::vector<std::int32_t> ahead;          // read, or being read, for the next pass
    std::unique_ptr<Policy> policy;
  };
  // An expert on its way into a slot.
  struct Loading {
    int layer = 0;
    std::size_t slot = 0;
    bool ahead = false;
    int reads = 0;  // still in flight
    std::string error = {};
  };
  struct Arrival {
    int layer = 0;
    std::int32_t expert = 0;
    bool ahead = false;
    std::string error;  // empty: the expert is in its slot
  };
  std::byte* memory(int layer, std::size_t slot) const;
  Layer& layer(int layer) { return layers_[layer]; }
  void drop(Layer& layer, std::size_t slot);
  // A slot for an expert that is in none: an empty one, or that of the policy's victim, which is none of
  // `kept`.
  bool find_slot(Layer& layer, std::span<const std::int32_t> kept, std::size_t& slot);
  void load(Loading loading, std::int32_t expert, std::vector<Request>& requests);
  void start(std::span<const Request> requests);
  // Waits for a read: the expert whose last one that was.
  std::optional<Arrival> receive();
  // Empty, or why the bytes in the slot are not the expert's. What was right once is trusted until the file
  // is written to.
  std::string check(int layer, std::int32_t expert, const Expert& weights);

  Store store_;
  std::unique_ptr<Reader> reader_;
  Options options_;
  std::int64_t slots_ = 0;
  std::vector<Layer> layers_;
  std::vector<Loading> loading_;     // by tag
  std::vector<std::uint32_t> free_;  // tags
  std::size_t in_flight_ = 0;        // reads
  Usage usage_;
  GuessRecord guesses_;
  std::function<void(int layer, std::span<const std::int32_t> experts)> observer_;
  mutable std::mutex turn_;
};

}  // namespace sluice::experts
