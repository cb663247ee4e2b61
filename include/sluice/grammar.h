// Structured output: JSON schemas, regular expressions, grammars and lists of choices become one automaton
// over bytes, which says before each token which tokens may come next.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// The tokens of a model as bytes, indexed for masks. Immutable; shared by all grammars and threads.
class GrammarVocabulary {
 public:
  // `bytes` holds the bytes of each id; ids without bytes (holes) are never matched. Any of the `stop` ids
  // ends the text where the grammar allows it to end. The `named` ids are special tokens (<think>,
  // <tool_call>): no text matches them, only a place where an answer's format names them.
  GrammarVocabulary(std::span<const std::string_view> bytes, std::span<const std::int32_t> stop,
                    std::span<const std::int32_t> named = {});
  GrammarVocabulary(std::span<const std::string> bytes, std::span<const std::int32_t> stop,
                    std::span<const std::int32_t> named = {});
  ~GrammarVocabulary();
  GrammarVocabulary(const GrammarVocabulary&) = delete;
  GrammarVocabulary& operator=(const GrammarVocabulary&) = delete;

  std::int32_t size() const;

  struct State;
  const State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// Which whitespace a JSON document may have between its tokens.
enum class JsonWhitespace {
  none,      // {"a":1,"b":[2,3]}
  readable,  // at most one space, or a line break and indentation, after brackets, commas and colons
  any,       // whatever JSON allows
};

// Limits for the cost of bad input; exceeding one is an Error of kind resource.
struct GrammarLimits {
  std::size_t source_bytes = std::size_t{10} << 20;
  std::size_t nodes = 1'000'000;           // of rules
  std::size_t terms = 1'000'000;           // of regular expressions
  std::size_t configurations = 8'000'000;  // of one matcher's parser
  std::size_t work_per_step = 2'000'000;   // parser steps for one mask or one token
  std::chrono::milliseconds compile_time{10'000};
  std::chrono::milliseconds step_time{5'000};  // for one mask or one token
};

struct GrammarSource {
  enum class Kind {
    json,         // any JSON document
    json_schema,  // text: a schema of draft 4, 6, 7, 2019-09 or 2020-12
    regex,        // text: RE2's syntax; the whole answer must match
    ebnf,         // text: GBNF or the EBNF of the XML standard, from the rule `root`
    choice,       // one of `choices`
  };

  Kind kind = Kind::json;
  std::string text;
  std::vector<std::string> choices;
  JsonWhitespace whitespace = JsonWhitespace::readable;
};

struct AnswerSource;  // the form of a whole answer: see answer.h

// A compiled grammar. Immutable to its users; many matchers may share it.
class Grammar {
 public:
  // Throws with kind `input` for invalid and `unsupported` for unsupported sources, naming the place.
  Grammar(const GrammarSource& source, std::shared_ptr<const GrammarVocabulary> vocabulary,
          const GrammarLimits& limits = {});
  Grammar(const AnswerSource& source, std::shared_ptr<const GrammarVocabulary> vocabulary,
          const GrammarLimits& limits = {});
  ~Grammar();
  Grammar(const Grammar&) = delete;
  Grammar& operator=(const Grammar&) = delete;

  const GrammarVocabulary& vocabulary() const;

  struct State;
  const State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// Compiles each source once; may be called from many threads.
class GrammarCache {
 public:
  explicit GrammarCache(std::shared_ptr<const GrammarVocabulary> vocabulary, std::size_t capacity = 128,
                        const GrammarLimits& limits = {});
  ~GrammarCache();

  std::shared_ptr<const Grammar> get(const GrammarSource& source);
  std::shared_ptr<const Grammar> get(const AnswerSource& source);

 private:
  template <class Source>
  std::shared_ptr<const Grammar> get(std::string key, const Source& source);

  struct State;
  std::unique_ptr<State> state_;
};

// Follows one text through a grammar. One thread at a time; copies are independent and may go to other
// threads.
class Matcher {
 public:
  explicit Matcher(std::shared_ptr<const Grammar> grammar);
  ~Matcher();
  Matcher(const Matcher& other);
  Matcher(Matcher&& other) noexcept;
  Matcher& operator=(Matcher&& other) noexcept;

  // One bit per token, the lowest of a word first: set where the token may come next. `bits` has
  // mask_words() words.
  void mask(std::span<std::uint32_t> bits);
  std::size_t mask_words() const;
  bool allows(std::int32_t token);
  // Advances by a token; throws with kind `input` if it is not allowed.
  void accept(std::int32_t token);
  // Advances by text as far as the grammar allows; returns the number of bytes accepted.
  std::size_t accept_text(std::string_view text);
  // Whether the text may end here.
  bool can_stop() const;
  // Whether the text must end here.
  bool must_stop();
  // Whether a stop token was accepted.
  bool finished() const;
  // The next token, if only one is allowed.
  std::optional<std::int32_t> forced();
  // The bytes that must follow; empty if there is a choice.
  std::string forced_text(std::size_t limit = 4096);
  // Undoes the last `count` calls of accept (accept_text counts as one).
  void rollback(std::size_t count);

 private:
  void renew();

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice
