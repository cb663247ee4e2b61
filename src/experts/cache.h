// Experts in memory: slots per layer, filled from a store as passes need them.
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

// Memory aligned to 2 MiB that is committed only when written to.
ops::Buffer reserve_memory(std::size_t bytes);

// How good recent guesses at experts were.
class GuessRecord {
 public:
  void learn(std::size_t right, std::size_t wrong) {
    right_ = kKept * right_ + right;
    wrong_ = kKept * wrong_ + wrong;
  }
  // Whether to act on a guess: of the experts read for guesses, at least half must have been needed.
  // Otherwise one guess now and then gets a chance.
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
    // Called once per layer when its slots are first set. `whole`: with the bytes for all experts, for memory
    // that is committed only when written to; otherwise with those for the slots, whose number is then fixed.
    std::function<ops::Buffer(std::size_t bytes)> memory = reserve_memory;
    bool whole = true;
  };

  Cache(Store store, std::unique_ptr<Reader> reader, Options options);
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  const Store& store() const { return store_; }
  const Reader& reader() const { return *reader_; }
  // Slots per layer, from 1 to the number of its experts. Fewer slots than before return memory.
  void set_slots(std::int64_t slots);
  std::int64_t slots() const { return slots_; }
  // Bytes of all layers with that many slots per layer.
  std::uint64_t bytes(std::int64_t slots) const;
  Usage usage() const;
  // `observer` is called with every pass before it is served.
  void observe(std::function<void(int layer, std::span<const std::int32_t> experts)> observer);

  // An expert that a pass may use.
  struct Resident {
    std::int32_t expert = 0;
    Expert weights;
  };
  // The expert if it is in memory; for callers that know that it stays there.
  std::optional<Resident> find(int layer, std::int32_t expert) const;
  // One layer's experts for one pass. Passes of several threads take turns.
  class Pass {
   public:
    // Starts reading those of `wanted` (distinct) that are in no slot, as many as there are slots for.
    Pass(Cache& cache, int layer, std::span<const std::int32_t> wanted);
    // Waits for the reads in flight.
    ~Pass();
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

    // Experts that are available now, each wanted one once: first those in slots, then the others as they
    // arrive. Overwrites may follow for what was returned before. Empty once all have been returned. Throws
    // if an expert could not be read; the cache stays usable.
    std::span<const Resident> next();

    // Whether recent guesses were good enough to make another.
    bool trusts_guesses() { return cache_.guesses_.trusted(); }
    // Starts reading experts that the next pass over another layer may need, without waiting. Errors of these
    // reads are ignored.
    void read_ahead(int layer, std::span<const std::int32_t> guessed);

   private:
    void count(std::span<const std::int32_t> wanted);
    void start_reads();
    void receive();

    Cache& cache_;
    std::lock_guard<std::mutex> turn_;
    int layer_;
    std::vector<std::int32_t> missing_;  // not yet requested, the next one last
    std::vector<std::int32_t> awaited_;  // being read
    std::vector<Resident> ready_;        // not yet returned by next()
    std::vector<Resident> handed_out_;
    std::string error_;
  };

 private:
  struct Slot {
    std::int32_t expert = -1;
    bool held = false;     // used by the current pass
    bool loading = false;  // being read
    Expert weights;        // valid once read
  };
  struct Layer {
    ops::Buffer memory;
    std::vector<Slot> slots;
    std::vector<std::int32_t> slot_of;        // by expert; -1: none
    std::vector<std::uint64_t> fingerprints;  // by expert, as stored or first read; 0: unknown
    std::vector<bool> verified;               // by expert: its bytes have matched the fingerprint
    std::vector<std::int32_t> ahead;          // read ahead, or being read, for the next pass
    std::unique_ptr<Policy> policy;
  };
  // An expert that is being read into a slot.
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
  // Finds a slot for an expert that is in none: an empty one, or that of the policy's victim, which is none
  // of `kept`.
  bool find_slot(Layer& layer, std::span<const std::int32_t> kept, std::size_t& slot);
  void load(Loading loading, std::int32_t expert, std::vector<Request>& requests);
  void start(std::span<const Request> requests);
  // Waits for one read; returns the expert if that was its last.
  std::optional<Arrival> receive();
  // Empty, or why the bytes in the slot are not the expert's. Bytes that matched once are trusted until the
  // file is written to.
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
