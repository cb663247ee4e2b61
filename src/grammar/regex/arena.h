// Regular expressions over bytes as shared, simplified terms: equal terms have equal ids, so a term is the
// state of an automaton and its derivatives are the transitions (Brzozowski 1964; Owens et al. 2009).
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "grammar/regex/byte_set.h"
#include "grammar/regex/flat_map.h"
#include "grammar/step_clock.h"

namespace sluice::grammar::regex {

using Id = std::uint32_t;

constexpr std::uint32_t kNoLimit = std::numeric_limits<std::uint32_t>::max();

// The state of a number being read: what decides whether it will be a multiple of `divisor` / 10^`places`.
struct MultipleOf {
  std::uint64_t divisor = 1;
  std::uint32_t places = 0;
  std::int32_t fraction_digits = -1;  // -1 before the decimal point
  std::uint64_t remainder = 0;

  friend bool operator==(const MultipleOf&, const MultipleOf&) = default;
};

class Arena {
 public:
  static constexpr Id kNothing = 0;     // no word
  static constexpr Id kEmpty = 1;       // the empty word
  static constexpr Id kEverything = 2;  // every word

  enum class Kind : std::uint8_t {
    nothing,
    empty,
    bytes,
    concat,
    any_of,
    all_of,
    complement,
    repeat,
    multiple
  };

  // Throws once there are more terms than this.
  explicit Arena(std::size_t max_terms = 2'000'000);
  Arena(const Arena& other);
  Arena& operator=(const Arena&) = delete;
  // The clock that limits derivatives from now on; copies of the arena have none.
  void watch(StepClock* clock) { clock_ = clock; }
  void check_time() const {
    if (clock_ != nullptr) clock_->look();
  }
  // For work in many small steps: checks the clock now and then.
  void count_steps(std::size_t steps) const {
    if (clock_ != nullptr) clock_->poll(steps);
  }

  Id bytes(const ByteSet& set);
  Id byte(unsigned char value);
  Id literal(std::string_view text);
  // One of the texts, as a tree of their prefixes.
  Id literals(std::vector<std::string> texts);
  Id concat(Id head, Id tail);
  Id sequence(std::initializer_list<Id> parts);
  Id any_of(std::vector<Id> choices);
  Id all_of(std::vector<Id> conditions);
  Id complement(Id inner);
  Id repeat(Id inner, std::uint32_t min, std::uint32_t max = kNoLimit);
  Id optional(Id inner) { return repeat(inner, 0, 1); }
  // Digits with at most one decimal point whose value is a multiple; to be combined with the syntax of a
  // number.
  Id multiple_of(const MultipleOf& digits);

  bool nullable(Id id) const { return nodes_[id].nullable; }
  // Whether it takes a search to find out that no word is left.
  bool may_be_void(Id id) const { return nodes_[id].searched; }
  Id derivative(Id id, unsigned char byte);
  // Frees the memory of cached derivatives.
  void forget_derivatives() { derivatives_.clear(); }
  // Appends a short word of a plain term; of other terms, a likely one. False if it has no guess of at most
  // `limit` bytes.
  bool guess_word(Id id, std::size_t limit, std::string& word) const;
  // An estimate of the distance to a word: the sum of what conditions still require.
  std::uint64_t effort(Id id) const;
  // Sets that separate the bytes whose derivatives may differ.
  void first_sets(Id id, std::vector<ByteSet>& sets) const;

  Kind kind(Id id) const { return nodes_[id].kind; }
  // A concatenation's head and tail, or a repetition's inner term.
  Id first(Id id) const { return nodes_[id].a; }
  Id second(Id id) const { return nodes_[id].b; }
  std::uint32_t repeat_min(Id id) const { return nodes_[id].b; }
  std::uint32_t repeat_max(Id id) const { return nodes_[id].c; }

  // The same text for the same term in every arena; empty if longer than `limit`.
  std::string describe(Id id, std::size_t limit) const;
  std::size_t size() const { return nodes_.size(); }

 private:
  struct Node {
    Kind kind = Kind::nothing;
    bool nullable = false;
    bool searched = false;
    std::uint32_t shortest = 0;  // length of the shortest word, or less
    std::uint32_t a = 0, b = 0, c = 0;
  };
  struct Hash {
    const Arena* arena;
    std::size_t operator()(Id id) const { return arena->hash(id); }
  };
  struct Equal {
    const Arena* arena;
    bool operator()(Id a, Id b) const { return arena->equal(a, b); }
  };

  Id intern(Node node);
  std::uint32_t shortest(const Node& node) const;
  Id intern_list(Kind kind, std::span<const Id> members);
  std::span<const Id> members(const Node& node) const { return {lists_.data() + node.a, node.b}; }
  std::size_t hash(Id id) const;
  bool equal(Id a, Id b) const;
  Id literal_tree(std::span<const std::string> sorted, std::size_t at);
  void join_heads(std::vector<Id>& choices);
  Id derive(Id id, unsigned char byte);
  Id derive_list(Id id, unsigned char byte);
  Id derive_multiple(Id id, unsigned char byte);
  void describe(Id id, std::size_t limit, std::string& out) const;
  void poll() const {
    if (clock_ != nullptr) clock_->poll();
  }

  std::size_t max_terms_;
  StepClock* clock_ = nullptr;
  std::vector<Node> nodes_;
  std::vector<Id> lists_;
  std::vector<ByteSet> sets_;
  std::vector<MultipleOf> multiples_;
  std::unordered_set<Id, Hash, Equal> known_;
  FlatMap derivatives_;  // by term and byte: parts of products recur in many of them
};

}  // namespace sluice::grammar::regex
