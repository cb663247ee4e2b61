#include "text/pretokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "text/unicode.h"

namespace sluice::text {
namespace {

constexpr std::string_view kInPreTokenizer = "tokenizer.json: pre_tokenizer";
constexpr std::size_t kMaxSteps = 32;  // each scans the complete text

}  // namespace

Pretokenizer::Pretokenizer(const Json& json) {
  if (!json.is_null()) add_step(json);
  if (!byte_level_)
    fail(ErrorKind::unsupported,
         "{}: there is no ByteLevel in it, and only byte-level vocabularies are supported", kInPreTokenizer);
}

void Pretokenizer::add_step(const Json& json) {
  const auto type = json_get<std::string>(json, "type", kInPreTokenizer);
  if (type == "Sequence") {
    const Json* parts = json_find(json, "pretokenizers", kInPreTokenizer);
    if (parts == nullptr || !parts->is_array())
      fail(ErrorKind::checkpoint, "{}: a Sequence needs the array 'pretokenizers'", kInPreTokenizer);
    for (const Json& part : *parts) add_step(part);
    return;
  }
  if (byte_level_)
    fail(ErrorKind::unsupported, "{}: {} comes after ByteLevel, which must be last", kInPreTokenizer,
         quote(type));
  if (steps_.size() == kMaxSteps)
    fail(ErrorKind::unsupported, "{}: it has more than {} steps, the most supported", kInPreTokenizer,
         kMaxSteps);
  if (type == "Split") {
    add_split(json);
  } else if (type == "Digits") {
    const bool individual = json_get_or<bool>(json, "individual_digits", false, kInPreTokenizer);
    steps_.push_back({make_class_pattern(kNumeric), individual ? Behavior::isolated : Behavior::contiguous});
  } else if (type == "ByteLevel") {
    add_byte_level(json);
  } else {
    fail(ErrorKind::unsupported, "{}: {} is not supported, only Sequence, Split, Digits and ByteLevel are",
         kInPreTokenizer, quote(type));
  }
}

void Pretokenizer::add_split(const Json& json) {
  const Json* pattern = json_find(json, "pattern", kInPreTokenizer);
  const bool regex = pattern != nullptr && pattern->is_object() && pattern->contains("Regex");
  const bool literal = pattern != nullptr && pattern->is_object() && pattern->contains("String");
  if (regex == literal)
    fail(ErrorKind::checkpoint, "{}: a Split needs a 'pattern' with either 'Regex' or 'String'",
         kInPreTokenizer);
  const auto text = json_get<std::string>(*pattern, regex ? "Regex" : "String", kInPreTokenizer);
  Step step;
  if (literal) {
    step.pattern = make_literal_pattern(text);
  } else {
    step.pattern = make_known_pattern(text);
    if (step.pattern == nullptr) step.pattern = make_regex_pattern(text);
  }
  step.behavior = parse_behavior(json);
  step.invert = json_get_or<bool>(json, "invert", false, kInPreTokenizer);
  steps_.push_back(std::move(step));
}

Pretokenizer::Behavior Pretokenizer::parse_behavior(const Json& json) {
  const auto name = json_get<std::string>(json, "behavior", kInPreTokenizer);
  constexpr std::pair<std::string_view, Behavior> kNames[] = {
      {"Removed", Behavior::removed},
      {"Isolated", Behavior::isolated},
      {"MergedWithPrevious", Behavior::merged_with_previous},
      {"MergedWithNext", Behavior::merged_with_next},
      {"Contiguous", Behavior::contiguous},
  };
  for (const auto& [known, behavior] : kNames)
    if (name == known) return behavior;
  fail(ErrorKind::unsupported, "{}: the Split behavior {} is not supported", kInPreTokenizer, quote(name));
}

void Pretokenizer::add_byte_level(const Json& json) {
  Step step;
  step.prefix_space = json_get<bool>(json, "add_prefix_space", kInPreTokenizer);
  if (json_get_or<bool>(json, "use_regex", true, kInPreTokenizer))
    step.pattern = make_known_pattern(kGpt2Regex);
  if (step.prefix_space || step.pattern != nullptr) steps_.push_back(std::move(step));
  byte_level_ = true;
}

void Pretokenizer::split(std::string_view text, Words& words) const {
  if (text.empty()) return;
  const std::size_t first = words.views.size();
  words.views.push_back(text);
  std::vector<std::string_view> pieces;
  std::vector<Match> matches;
  for (const Step& step : steps_) {
    pieces.assign(words.views.begin() + first, words.views.end());
    words.views.resize(first);
    for (const std::string_view piece : pieces) {
      if (step.prefix_space && piece.front() != ' ')
        cut(step, words.prefixed.emplace_back(" ").append(piece), matches, words);
      else
        cut(step, piece, matches, words);
    }
  }
}

void Pretokenizer::cut(const Step& step, std::string_view piece, std::vector<Match>& matches, Words& words) {
  if (step.pattern == nullptr) {
    words.views.push_back(piece);
    return;
  }
  matches.clear();
  step.pattern->find_all(piece, matches);
  const auto emit = [&](std::size_t begin, std::size_t end) {
    if (begin < end) words.views.push_back(piece.substr(begin, end - begin));
  };
  if (step.behavior == Behavior::isolated) {  // used by every known model
    std::size_t at = 0;
    for (const Match& match : matches) {
      emit(at, match.begin);
      emit(match.begin, match.end);
      at = match.end;
    }
    emit(at, piece.size());
    return;
  }
  for (const Stretch& stretch : merged(step.behavior, stretches_of(step, piece, matches)))
    if (!stretch.matched) emit(stretch.begin, stretch.end);
}

std::vector<Pretokenizer::Stretch> Pretokenizer::stretches_of(const Step& step, std::string_view piece,
                                                              const std::vector<Match>& matches) {
  std::vector<Stretch> stretches;
  std::size_t at = 0;
  for (const Match& match : matches) {
    if (at != match.begin) stretches.push_back({at, match.begin, step.invert});
    stretches.push_back({match.begin, match.end, !step.invert});
    at = match.end;
  }
  if (at != piece.size()) stretches.push_back({at, piece.size(), step.invert});
  return stretches;
}

// Joins stretches; those that are still marked as matched will be dropped.
std::vector<Pretokenizer::Stretch> Pretokenizer::merged(Behavior behavior,
                                                        const std::vector<Stretch>& stretches) {
  if (behavior == Behavior::removed) return stretches;
  std::vector<Stretch> ordered = stretches, out;
  const bool backwards = behavior == Behavior::merged_with_next;
  if (backwards) std::reverse(ordered.begin(), ordered.end());
  bool previous_matched = false;
  for (const Stretch& stretch : ordered) {
    const bool joins = behavior == Behavior::contiguous ? stretch.matched == previous_matched
                                                        : stretch.matched && !previous_matched;
    previous_matched = stretch.matched;
    if (!joins || out.empty())
      out.push_back({stretch.begin, stretch.end, false});
    else if (backwards)
      out.back().begin = stretch.begin;
    else
      out.back().end = stretch.end;
  }
  if (backwards) std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace sluice::text
