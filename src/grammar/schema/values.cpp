// The text of values: scalars as regular expressions, objects and arrays as rules.
#include <algorithm>

#include "base/error.h"
#include "grammar/json/string.h"
#include "grammar/schema/array_rule.h"
#include "grammar/schema/compiler.h"
#include "grammar/schema/formats.h"
#include "grammar/schema/object_rule.h"

namespace sluice::grammar::schema {

JsonTokens json_tokens(regex::Arena& arena, JsonWhitespace whitespace) {
  constexpr std::uint32_t kMaxIndentation = 80;
  regex::Id before = regex::Arena::kEmpty, inside = regex::Arena::kEmpty, closing = regex::Arena::kEmpty;
  const regex::Id blank = arena.byte(' ');
  if (whitespace == JsonWhitespace::readable) {
    const regex::Id line = arena.concat(
        arena.byte('\n'),
        arena.repeat(arena.bytes(regex::ByteSet::range(' ', ' ') | regex::ByteSet::range('\t', '\t')), 0,
                     kMaxIndentation));
    inside = closing = arena.optional(arena.any_of({blank, line}));
  } else if (whitespace == JsonWhitespace::any) {
    regex::ByteSet set;
    for (const char c : {' ', '\t', '\n', '\r'}) set.add(c);
    before = inside = closing = arena.repeat(arena.bytes(set), 0);
  }
  const auto token = [&](regex::Id left, char c, regex::Id right) {
    return arena.sequence({left, arena.byte(c), right});
  };
  constexpr regex::Id kNone = regex::Arena::kEmpty;
  return {
      .open_object = token(kNone, '{', inside),
      .close_object = token(closing, '}', kNone),
      .close_empty_object = token(kNone, '}', kNone),
      .open_array = token(kNone, '[', inside),
      .close_array = token(closing, ']', kNone),
      .close_empty_array = token(kNone, ']', kNone),
      .comma = token(before, ',', inside),
      .colon = token(before, ':', whitespace == JsonWhitespace::readable ? arena.optional(blank) : inside)};
}

Compiler::Compiler(json::Value schema, JsonWhitespace whitespace, Rules& rules, regex::Lexer& lexer)
    : document_(std::move(schema)),
      rules_(rules),
      lexer_(lexer),
      arena_(lexer.arena()),
      tokens_(json_tokens(arena_, whitespace)),
      any_char_(json::any_char(arena_)) {}

RuleId Compiler::compile() {
  const RuleId root = rules_.add_rule("root");
  const NodeId end = rules_.add_node(root);
  rules_.set_final(end);
  add_value(rules_.start(root), demands_of(document_.root(), nullptr), end);
  while (!unwritten_.empty()) {
    check_time();
    const auto [rule, demands] = std::move(unwritten_.back());
    unwritten_.pop_back();
    write_rule(rule, demands);
  }
  return root;
}

const Compiler::Value& Compiler::value(const Demands& demands) {
  if (const auto found = values_.find(demands); found != values_.end()) return found->second;
  Value value;
  std::vector<regex::Id> strings, others;
  for (const Demands& way : alternatives(demands)) {
    const Constraints constraints = merge(way);
    if (constraints.values) {
      strings.push_back(values_text(constraints, true));
      others.push_back(values_text(constraints, false));
      continue;
    }
    for (const json::Value* excluded : constraints.excluded) {
      const bool structured = excluded->is_array() || excluded->is_object();
      if (structured && (constraints.types & (excluded->is_array() ? kArray : kObject)) != 0)
        unsupported(constraints, "not", "excluding an object or an array is not supported");
    }
    const auto excludes = [&](json::Value::Kind kind, bool boolean) {
      return std::ranges::any_of(constraints.excluded, [&](const json::Value* one) {
        return one->kind == kind && one->boolean == boolean;
      });
    };
    const unsigned types = constraints.types;
    if ((types & kNull) != 0 && !excludes(json::Value::Kind::null, false))
      others.push_back(arena_.literal("null"));
    for (const bool boolean : {false, true})
      if ((types & kBoolean) != 0 && !excludes(json::Value::Kind::boolean, boolean))
        others.push_back(arena_.literal(boolean ? "true" : "false"));
    if ((types & (kInteger | kFraction)) != 0) others.push_back(number_text(constraints));
    if ((types & kString) != 0) strings.push_back(json::quoted(arena_, string_content(constraints)));
    value.structured |= (types & (kObject | kArray)) != 0;
  }
  value.strings = arena_.any_of(std::move(strings));
  value.others = arena_.any_of(std::move(others));
  if (value.structured) {
    value.rule = rules_.add_rule(demands.empty() ? "value" : document_.path(*demands[0].schema));
    unwritten_.emplace_back(*value.rule, demands);
  }
  return values_.emplace(demands, value).first->second;
}

void Compiler::add_value(NodeId from, const Demands& demands, NodeId to) {
  const Value& text = value(demands);
  rules_.add_lexeme(from, text.strings, to);
  rules_.add_lexeme(from, text.others, to);
  if (text.rule) rules_.add_call(from, *text.rule, to);
}

void Compiler::write_rule(RuleId rule, const Demands& demands) {
  for (const Demands& way : alternatives(demands)) {
    const Constraints constraints = merge(way);
    if (constraints.values) continue;
    if ((constraints.types & kObject) != 0) ObjectRule(*this, constraints, rule).write();
    if ((constraints.types & kArray) != 0) ArrayRule(*this, constraints, rule).write();
  }
}

const regex::Pattern& Compiler::parsed_pattern(const json::Value& schema, std::string_view keyword,
                                               const std::string& pattern) {
  if (const auto found = patterns_.find(pattern); found != patterns_.end()) return found->second;
  try {
    return patterns_.emplace(pattern, regex::parse_pattern(pattern, {.ecma = true})).first->second;
  } catch (const Error& error) {
    fail(error.kind(), "schema: {}/{}: {}", document_.path(schema), keyword, error.what());
  }
}

regex::Id Compiler::pattern_regex(const json::Value& schema, std::string_view keyword,
                                  const std::string& pattern) {
  if (const auto found = pattern_regexes_.find(pattern); found != pattern_regexes_.end())
    return found->second;
  const regex::Pattern& parsed = parsed_pattern(schema, keyword, pattern);
  try {
    return pattern_regexes_[pattern] = regex::search_regex(arena_, parsed, regex::TextForm::json_string);
  } catch (const Error& error) {
    fail(error.kind(), "schema: {}/{}: {}", document_.path(schema), keyword, error.what());
  }
}

namespace {

// ^[set]{m,n}$: combined with a length limit, it stays a plain repetition.
const regex::Pattern* as_repeated_set(const regex::Pattern& pattern) {
  using Kind = regex::Pattern::Kind;
  if (pattern.kind != Kind::concat || pattern.parts.size() != 3 || pattern.parts[0].kind != Kind::begin ||
      pattern.parts[2].kind != Kind::end)
    return nullptr;
  const regex::Pattern& middle = pattern.parts[1];
  return middle.kind == Kind::repeat && middle.parts[0].kind == Kind::chars ? &middle : nullptr;
}

}  // namespace

regex::Id Compiler::string_content(const Constraints& constraints) {
  std::vector<regex::Id> conditions;
  regex::Id unit = any_char_;
  std::uint32_t min = constraints.length.min, max = constraints.length.max;
  bool bounded = min > 0 || max != regex::kNoLimit;
  for (const json::Value* pattern : constraints.patterns) {
    const regex::Pattern* repeated = as_repeated_set(patterns_.at(pattern->string));
    if (repeated != nullptr && unit == any_char_) {
      unit = json::char_regex(arena_, repeated->parts[0].chars);
      min = std::max(min, repeated->min);
      max = std::min(max, repeated->max);
      bounded = true;
    } else {
      conditions.push_back(pattern_regexes_.at(pattern->string));
    }
  }
  for (const json::Value* pattern : constraints.not_patterns)
    conditions.push_back(arena_.complement(pattern_regexes_.at(pattern->string)));
  for (const std::string& format : constraints.formats) {
    const bool negated = format.starts_with('!');
    const std::string_view text = find_format(std::string_view(format).substr(negated ? 1 : 0)).pattern;
    auto& known = pattern_regexes_["format " + std::string(text)];
    if (known == regex::Arena::kNothing)
      known = regex::match_regex(arena_, regex::parse_pattern(text, {.ecma = true}),
                                 regex::TextForm::json_string);
    conditions.push_back(negated ? arena_.complement(known) : known);
  }
  std::vector<std::string> excluded;
  for (const json::Value* value : constraints.excluded)
    if (value->is_string()) excluded.push_back(json::escaped(value->string));
  if (!excluded.empty()) conditions.push_back(arena_.complement(arena_.literals(std::move(excluded))));
  const bool closed = std::ranges::any_of(
      conditions, [this](regex::Id id) { return arena_.kind(id) != regex::Arena::Kind::complement; });
  if (bounded || !closed) conditions.push_back(arena_.repeat(unit, min, max));
  return arena_.all_of(std::move(conditions));
}

regex::Id Compiler::number_text(const Constraints& constraints) {
  json::NumberRange range = constraints.numbers;
  range.integers = (constraints.types & kInteger) != 0;
  range.fractions = (constraints.types & kFraction) != 0;
  std::vector<regex::Id> conditions;
  try {
    for (const json::Decimal& divisor : constraints.multiples)
      conditions.push_back(json::multiple_regex(arena_, divisor));
    for (const json::Decimal& divisor : constraints.not_multiples)
      conditions.push_back(arena_.complement(json::multiple_regex(arena_, divisor)));
  } catch (const Error& error) {
    unsupported(constraints, "multipleOf", error.what());
  }
  for (const json::Value* value : constraints.excluded)
    if (value->is_number())
      conditions.push_back(arena_.complement(json::same_number_regex(arena_, value->number)));
  if (!conditions.empty() && range.fractions && range.integers && !range.high) {
    // Digits are compared one by one, which numbers with an exponent would evade.
    range.lower(json::Decimal::parse("1e300"), false);
  }
  conditions.push_back(json::number_regex(arena_, range));
  return arena_.all_of(std::move(conditions));
}

regex::Id Compiler::value_text(const json::Value& value) {
  switch (value.kind) {
    case json::Value::Kind::null:
      return arena_.literal("null");
    case json::Value::Kind::boolean:
      return arena_.literal(value.boolean ? "true" : "false");
    case json::Value::Kind::number:
      return arena_.literal(value.number.text());
    case json::Value::Kind::string:
      return arena_.literal("\"" + json::escaped(value.string) + "\"");
    case json::Value::Kind::array: {
      regex::Id text = value.items.empty() ? tokens_.close_empty_array : tokens_.close_array;
      for (std::size_t i = value.items.size(); i-- > 0;)
        text =
            arena_.sequence({i > 0 ? tokens_.comma : regex::Arena::kEmpty, value_text(value.items[i]), text});
      return arena_.concat(tokens_.open_array, text);
    }
    case json::Value::Kind::object: {
      regex::Id text = value.members.empty() ? tokens_.close_empty_object : tokens_.close_object;
      for (std::size_t i = value.members.size(); i-- > 0;) {
        const auto& [name, member] = value.members[i];
        text = arena_.sequence({i > 0 ? tokens_.comma : regex::Arena::kEmpty,
                                arena_.literal("\"" + json::escaped(name) + "\""), tokens_.colon,
                                value_text(member), text});
      }
      return arena_.concat(tokens_.open_object, text);
    }
  }
  return regex::Arena::kNothing;
}

regex::Id Compiler::values_text(const Constraints& constraints, bool strings) {
  std::vector<std::string> literals;
  std::vector<regex::Id> others;
  Constraints conditions = constraints;
  conditions.values.reset();
  for (const json::Value* value : *constraints.values) {
    if (value->is_string() != strings || !admits(conditions, *value)) continue;
    if (value->is_string()) {
      literals.push_back("\"" + json::escaped(value->string) + "\"");
    } else {
      others.push_back(value_text(*value));
    }
  }
  return strings ? arena_.literals(std::move(literals)) : arena_.any_of(std::move(others));
}

}  // namespace sluice::grammar::schema
