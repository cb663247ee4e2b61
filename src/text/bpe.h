// Byte-pair encoding: joins the bytes of a word pair by pair, always the pair of lowest rank first.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/vocabulary.h"

namespace sluice::text {

inline constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio, for hashing

// Open-addressing map from a pair of ids to its merge.
class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank;
    std::int32_t id;  // of the joined piece
  };

  MergeTable() = default;
  explicit MergeTable(std::size_t count);

  // If a pair is inserted twice, the later merge wins.
  void insert(std::int32_t left, std::int32_t right, Merge merge);
  const Merge* find(std::int32_t left, std::int32_t right) const {
    const Slot& slot = slots_[slot_of(key_of(left, right))];
    return slot.key == kFree ? nullptr : &slot.merge;
  }

 private:
  struct Slot {
    std::uint64_t key;
    Merge merge;
  };
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};  // ids are never negative

  static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }
  // The slot of the key, or the free one where it would be inserted.
  std::size_t slot_of(std::uint64_t key) const {
    std::size_t slot = (key ^ key >> 29) * kSpread >> shift_;
    while (slots_[slot].key != key && slots_[slot].key != kFree) slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }

  std::vector<Slot> slots_;  // a power of two, at most half full
  int shift_ = 0;
};

// Ids of recent short words: direct-mapped and of fixed size, so that it stays in the processor's cache.
class WordCache {
 public:
  static constexpr std::size_t kMaxBytes = 15, kMaxIds = 7;

  // Sized for a text with this many bytes.
  explicit WordCache(std::size_t text_bytes);

  // The bytes and, in the last byte, their number; a number of 0: free.
  struct Key {
    std::uint64_t low = 0, high = 0;
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    Key key;
    std::int32_t count = 0;
    std::array<std::int32_t, kMaxIds> ids = {};
  };

  static Key key_of(std::string_view word);  // `word` has at most kMaxBytes
  Entry& entry_of(const Key& key);

 private:
  std::vector<Entry> entries_;
};

class Bpe {
 public:
  // Scratch memory of an encode call, owned by the caller so that threads can share a Bpe.
  class Workspace {
   public:
    explicit Workspace(std::size_t text_bytes) : cache(text_bytes) {}

   private:
    friend class Bpe;
    struct Symbol {
      std::int32_t id;
      std::int32_t previous, next;  // indices, -1 at the ends
    };
    WordCache cache;
    std::vector<Symbol> symbols;
    std::vector<std::uint64_t> queue;  // a heap of rank << 32 | position
  };

  Bpe() = default;
  // Reads the `model` of a tokenizer.json, whose pieces are already in `vocabulary`.
  Bpe(const Json& model, const Vocabulary& vocabulary);

  // Appends the ids of the word. Bytes that the vocabulary lacks are left out, as by the tokenizers package.
  void encode(std::string_view word, const Vocabulary& vocabulary, Workspace& work,
              std::vector<std::int32_t>& ids) const;

 private:
  void merge(std::string_view word, Workspace& work, std::vector<std::int32_t>& ids) const;
  void queue_pair(std::int32_t position, Workspace& work) const;

  std::array<std::int32_t, 256> byte_ids_ = {};  // -1: not in the vocabulary
  MergeTable merges_;
  bool ignore_merges_ = false;
};

// Adds the `vocab` of a tokenizer.json's `model` to the vocabulary.
void read_vocabulary(const Json& model, Vocabulary& vocabulary);

}  // namespace sluice::text
