// Splits text into the words that byte-pair encoding must not join.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/split_pattern.h"

namespace sluice::text {

class Pretokenizer {
 public:
  // Views of the text, or of one of the texts kept here if a prefix space was added.
  struct Words {
    std::vector<std::string_view> views;
    std::deque<std::string> prefixed;
  };

  Pretokenizer() = default;
  // Reads the `pre_tokenizer` of a tokenizer.json: Split, Digits and ByteLevel, alone or as a Sequence that
  // ends with ByteLevel; others are rejected by name.
  explicit Pretokenizer(const Json& json);

  // Appends the words of valid UTF-8 text.
  void split(std::string_view text, Words& words) const;

 private:
  // What happens to a match; named as in the file.
  enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

  struct Step {
    std::unique_ptr<SplitPattern> pattern;  // null: only adds a prefix space
    Behavior behavior = Behavior::isolated;
    bool invert = false;
    bool prefix_space = false;  // added to pieces that have none
  };

  // A stretch of text that is, or is not, a match.
  struct Stretch {
    std::size_t begin, end;
    bool matched;
  };

  static Behavior parse_behavior(const Json& json);
  void add_step(const Json& json);
  void add_split(const Json& json);
  void add_byte_level(const Json& json);
  static void cut(const Step& step, std::string_view piece, std::vector<Match>& matches, Words& words);
  static std::vector<Stretch> stretches_of(const Step& step, std::string_view piece,
                                           const std::vector<Match>& matches);
  static std::vector<Stretch> merged(Behavior behavior, const std::vector<Stretch>& stretches);

  std::vector<Step> steps_;
  bool byte_level_ = false;
};

}  // namespace sluice::text
